//go:build linux

package machine

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Image is the name of the one image that nodes have, whose program is the folder pod.
const Image = "localhost/pod:test"

// MakeImage builds the program of the pods, and makes an OCI image archive (image-spec v1) of it, which has nothing
// else. It returns the archive's path.
func MakeImage(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	program, archive := filepath.Join(dir, "pod"), filepath.Join(dir, "image.tar")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program,
		"github.com/openshift/origin-node/hack/machine/pod")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // the image has no libc
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	content, err := os.ReadFile(program)
	if err == nil {
		content, err = image(content)
	}
	if err == nil {
		err = os.WriteFile(archive, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

// image is an archive whose image has a program as /pod and nothing else.
func image(program []byte) ([]byte, error) {
	layer, err := archive([]file{{"pod", 0o755, program}})
	if err != nil {
		return nil, err
	}
	blobs := []file{{"oci-layout", 0o644, []byte(`{"imageLayoutVersion": "1.0.0"}`)}}
	// blob adds one, and returns the descriptor by which others refer to it.
	blob := func(mediaType string, content []byte) map[string]any {
		digest := sha256.Sum256(content)
		blobs = append(blobs, file{fmt.Sprintf("blobs/sha256/%x", digest), 0o644, content})
		return map[string]any{"mediaType": "application/vnd.oci.image." + mediaType, "digest": fmt.Sprintf("sha256:%x", digest), "size": len(content)}
	}
	layerBlob := blob("layer.v1.tar", layer)
	config, err := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/pod"}},
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
	named["annotations"] = map[string]string{"io.containerd.image.name": Image}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": []any{named}})
	if err != nil {
		return nil, err
	}
	return archive(append(blobs, file{"index.json", 0o644, index}))
}

type file struct {
	name    string
	mode    int64
	content []byte
}

func archive(files []file) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), Typeflag: tar.TypeReg}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
