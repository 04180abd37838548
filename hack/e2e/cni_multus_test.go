package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/containernetworking/cni/libcni"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/kernel/steering"
)

// TestCNI_Multus: Multus' thin plugin delegates to the list that ours is in. A DEL that fails in another plugin is repeated. CHECK finds
// that the kernel lacks what it should have.
func TestCNI_Multus(t *testing.T) {
	belongsTo(t, long)
	folder := os.Getenv("MULTUS")
	if folder == "" {
		lab.Lacks(t, "the environment variable MULTUS does not name a folder of hack/build-runtime.sh; run 'make test-e2e E2E=all'")
	}
	r := newCNIWorld(t, settings{backend: lab.NFT, nftables: true})
	r.cni = libcni.NewCNIConfigWithCacheDir([]string{r.own, filepath.Join(folder, "bin"), filepath.Join(folder, "cni")}, filepath.Join(r.dir, "cache"), nil)
	for _, version := range []string{"1.0.0", "1.1.0"} {
		r.scenario("CNI "+version, func() { r.delegated(version) })
	}
}

// delegated has a pod begin and end by Multus, and then one of another namespace with the same address.
func (r *cniRuntime) delegated(version string) {
	r.Helper()
	ipam := filepath.Join(r.dir, "ipam")
	list, err := libcni.NetworkConfFromBytes(fmt.Appendf(nil, `{"cniVersion": %q, "name": "multus", "plugins": [
		{"type": "multus", "cniDir": %q, "retryDeleteOnError": true, "delegates": [%s]}]}`,
		version, filepath.Join(r.dir, "multus"), conflist(version, r.on, ipam, 198, 198, withPlugin(r.on))))
	r.must(err)
	ours := r.start(list, r.create("shop", "ours", web))
	r.firstPackets(ours, r.ips(10)...)
	_, err = r.on.Host.Run(r.Context(), "nft", "delete", "table", "ip", steering.Table)
	r.must(err)
	r.must(r.on.Host.Do(func() error { return r.cni.CheckNetworkList(r.Context(), list, ours.conf) }))
	_, err = r.on.Host.Run(r.Context(), "nft", "list", "table", "ip", steering.Table)
	r.must(err)

	r.must(os.Rename(ipam, ipam+".away"))
	r.must(os.WriteFile(ipam, nil, 0o600)) // where host-local expects a folder
	if err := r.tryEnd(r.Context(), list, ours); err == nil {
		r.Error("DEL has not failed")
	}
	r.must(os.Remove(ipam))
	r.must(os.Rename(ipam+".away", ipam))
	r.end(list, ours)
	r.attached()
	stranger := r.start(list, r.create("bank", "stranger", web))
	r.firstPackets(stranger)
	r.end(list, stranger)
	r.attached()
	r.delete(ours.pod)
	r.delete(stranger.pod)
}
