//go:build linux

package machine

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"
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
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // the image has no libc
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	return MakeImages(t, root, map[string]Program{Image: {Entrypoint: []string{"/pod"}}})
}

// MakeImages makes images of these names that have the same root and run different programs. It returns the path of an OCI
// image archive (image-spec v1) that has them all.
func MakeImages(t testing.TB, root string, programs map[string]Program) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "images.tar")
	content, err := images(os.DirFS(root), programs)
	if err == nil {
		err = os.WriteFile(path, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// images is an archive of images that have the same root.
func images(root fs.FS, programs map[string]Program) ([]byte, error) {
	layer, err := archive(root)
	if err != nil {
		return nil, err
	}
	blobs := fstest.MapFS{"oci-layout": {Data: []byte(`{"imageLayoutVersion": "1.0.0"}`), Mode: 0o644}}
	// blob adds one, and returns the descriptor by which others refer to it.
	blob := func(mediaType string, content []byte) map[string]any {
		digest := sha256.Sum256(content)
		blobs[fmt.Sprintf("blobs/sha256/%x", digest)] = &fstest.MapFile{Data: content, Mode: 0o644}
		return map[string]any{"mediaType": "application/vnd.oci.image." + mediaType, "digest": fmt.Sprintf("sha256:%x", digest), "size": len(content)}
	}
	layerBlob := blob("layer.v1.tar", layer)
	var manifests []any
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		config, err := json.Marshal(map[string]any{
			"architecture": "amd64", "os": "linux",
			"config": map[string]any{"Entrypoint": programs[name].Entrypoint, "Cmd": programs[name].Arguments},
			"rootfs": map[string]any{"type": "layers", "diff_ids": []any{layerBlob["digest"]}},
		})
		if err != nil {
			return nil, err
		}
		manifest, err := json.Marshal(map[string]any{
			"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
			"config": blob("config.v1+json", config), "layers": []any{layerBlob},
		})
		if err != nil {
			return nil, err
		}
		named := blob("manifest.v1+json", manifest)
		named["annotations"] = map[string]string{"io.containerd.image.name": name}
		manifests = append(manifests, named)
	}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": manifests})
	if err != nil {
		return nil, err
	}
	blobs["index.json"] = &fstest.MapFile{Data: index, Mode: 0o644}
	return archive(blobs)
}

// archive is a tar archive of a file system.
func archive(files fs.FS) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.AddFS(files); err != nil {
		return nil, err
	}
	err := w.Close()
	return b.Bytes(), err
}
