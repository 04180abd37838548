package egress

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openshift/origin-node/hack/clustertest"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/extension"
)

// TestWatch_FaultsAreAskedForAtOnce: what Watch starts asks what is wrong while Watch goes on. The race detector watches.
func TestWatch_FaultsAreAskedForAtOnce(t *testing.T) {
	lab.InNamespace(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		config := nodeConfig
		config.PortSecurity.Enabled, config.SyncPeriod = true, time.Minute
		config.Steering.Mode, config.Ways = holders.Auto, Ways{LeaseNamespace: "origin-node", KeptKeys: filepath.Join(t.TempDir(), "keys")}
		config.Ways.Kernel.AnnouncePort = 4798
		var server clustertest.OneAnswer
		server.Answer.Store(errors.NewNotFound(configv1.Resource(""), "").ErrStatus)
		e, kube := New(ctx, config), fake.NewClientset()
		e.Watch(Clients{
			Kube: kube, Claims: kube, Config: clustertest.NewConfigClient(t, server.Handle), Outer: v1.IPv4Protocol,
			Nodes: extension.NewNodes(kube, unexplained, nil), Explain: unexplained,
		})
		end()
		e.running.Wait()
	})
}
