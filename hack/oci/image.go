package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// Image is one to write.
type Image struct {
	// Name is what a container runtime calls the image that it has imported, with a tag.
	Name string
	// Architecture is a GOARCH.
	Architecture string
	// Layers lie upon each other, the last one at the top.
	Layers []Layer
	// Entrypoint is the program, and Arguments are its arguments where a pod gives none.
	Entrypoint, Arguments []string
	// Environment has variables as NAME=VALUE.
	Environment []string
	// Labels say what the image is, for people and for registries.
	Labels map[string]string
}

// Layer is a part of an image's root.
type Layer struct {
	compressed []byte
	diffID     string // the digest of what is compressed
}

// NewLayer packs a file system, in the order of names. Everything belongs to root, and has the modes and times of the file
// system.
func NewLayer(root fs.FS) (Layer, error) {
	var packed bytes.Buffer
	hash := sha256.New()
	compressor := gzip.NewWriter(&packed)
	archive := tar.NewWriter(io.MultiWriter(hash, compressor))
	if err := errors.Join(archive.AddFS(root), archive.Close(), compressor.Close()); err != nil {
		return Layer{}, fmt.Errorf("pack a layer: %w", err)
	}
	return Layer{packed.Bytes(), fmt.Sprintf("sha256:%x", hash.Sum(nil))}, nil
}

// Write writes an archive of these images. A layer that several of them have is in it once.
func Write(w io.Writer, images ...Image) error {
	a := archive{w: tar.NewWriter(w), has: map[string]bool{}}
	a.file("oci-layout", []byte(`{"imageLayoutVersion": "1.0.0"}`))
	var manifests []descriptor
	for _, i := range images {
		manifests = append(manifests, a.image(i))
	}
	a.file("index.json", a.encode(map[string]any{"schemaVersion": 2, "manifests": manifests}))
	return errors.Join(a.err, a.w.Close())
}

// descriptor is how one part of an archive refers to another.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// archive is one that grows. After an error it does nothing more.
type archive struct {
	w   *tar.Writer
	has map[string]bool
	err error
}

func (a *archive) image(i Image) descriptor {
	var layers []descriptor
	var diffIDs []string
	for _, l := range i.Layers {
		layers = append(layers, a.blob("layer.v1.tar+gzip", l.compressed))
		diffIDs = append(diffIDs, l.diffID)
	}
	config := a.blob("config.v1+json", a.encode(map[string]any{
		"architecture": i.Architecture, "os": "linux",
		"config": map[string]any{"Entrypoint": i.Entrypoint, "Cmd": i.Arguments, "Env": i.Environment, "Labels": i.Labels},
		"rootfs": map[string]any{"type": "layers", "diff_ids": diffIDs},
	}))
	const manifest = "manifest.v1+json"
	named := a.blob(manifest, a.encode(map[string]any{
		"schemaVersion": 2, "mediaType": mediaType(manifest), "config": config, "layers": layers,
	}))
	named.Annotations = map[string]string{"io.containerd.image.name": i.Name}
	return named
}

func mediaType(kind string) string { return "application/vnd.oci.image." + kind }

// blob adds a part, which is named by its content.
func (a *archive) blob(kind string, content []byte) descriptor {
	digest := sha256.Sum256(content)
	a.file(fmt.Sprintf("blobs/sha256/%x", digest), content)
	return descriptor{MediaType: mediaType(kind), Digest: fmt.Sprintf("sha256:%x", digest), Size: len(content)}
}

func (a *archive) encode(value any) []byte {
	encoded, err := json.Marshal(value)
	a.err = errors.Join(a.err, err)
	return encoded
}

// file adds a file, once.
func (a *archive) file(name string, content []byte) {
	if a.err != nil || a.has[name] {
		return
	}
	a.has[name] = true
	if a.err = a.w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}); a.err == nil {
		_, a.err = a.w.Write(content)
	}
}
