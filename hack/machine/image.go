//go:build linux

package machine

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/openshift/origin-node/hack/oci"
)

// Image is the name of the image that all nodes have, whose program is the folder pod.
const Image = "localhost/pod:test"

// Program is what an image runs: its entry point, and the arguments where a pod gives none.
type Program struct{ Entrypoint, Arguments []string }

// MakeImage builds the program of the pods, and makes an image of it, which has nothing else. It returns the path of the
// image's archive.
func MakeImage(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(root, "pod"),
		"github.com/openshift/origin-node/hack/machine/pod")
	if made := os.Getenv("POD"); made != "" { // where there is no go: hack/kernels
		build = exec.CommandContext(t.Context(), "cp", made, root)
	}
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // the image has no libc
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	return MakeImages(t, root, map[string]Program{Image: {Entrypoint: []string{"/pod"}}})
}

// MakeImages makes images of these names that have the same root and run different programs. It returns the path of an
// archive that has them all.
func MakeImages(t testing.TB, root string, programs map[string]Program) string {
	t.Helper()
	layer, err := oci.NewLayer(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	var images []oci.Image
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		images = append(images, oci.Image{
			Name: name, Architecture: runtime.GOARCH, Layers: []oci.Layer{layer},
			Entrypoint: programs[name].Entrypoint, Arguments: programs[name].Arguments,
		})
	}
	archive, err := os.Create(filepath.Join(t.TempDir(), "images.tar"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(oci.Write(archive, images...), archive.Close()); err != nil {
		t.Fatal(err)
	}
	return archive.Name()
}
