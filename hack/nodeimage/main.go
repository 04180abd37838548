package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing/fstest"
	"time"

	"github.com/openshift/origin-node/hack/oci"
)

// options say what goes into an image.
type options struct {
	// name is the image's, with a tag.
	name string
	// binaries is the folder with openshift and origin-node-cni, entrypoint the script in front of them.
	binaries, entrypoint string
	// packages are those of Debian.
	packages []string
	// version and revision are what the image says of itself.
	version, revision string
	// time is that of every file.
	time time.Time
}

func main() {
	var o options
	output := flag.String("o", "", "The archive to write.")
	flag.StringVar(&o.name, "name", "", "The image's name, with a tag.")
	flag.StringVar(&o.binaries, "binaries", "", "The folder with openshift and origin-node-cni.")
	flag.StringVar(&o.entrypoint, "entrypoint", "", "The script that the image runs them by.")
	flag.StringVar(&o.version, "version", "", "The version that the image says it has.")
	flag.StringVar(&o.revision, "revision", "", "The commit that the image says it is of.")
	flag.Parse()
	o.packages = flag.Args()
	if err := o.write(*output); err != nil {
		fmt.Fprintln(os.Stderr, "nodeimage:", err)
		os.Exit(1)
	}
}

// write writes the archive in one step.
func (o options) write(output string) error {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w; expected the time of the commit in seconds", err)
	}
	o.time = time.Unix(seconds, 0)
	image, err := o.image()
	if err != nil {
		return err
	}
	unfinished, err := os.CreateTemp(filepath.Dir(output), filepath.Base(output)+".")
	if err != nil {
		return err
	}
	defer os.Remove(unfinished.Name()) //nolint:errcheck // it has its name by then, or nobody needs it
	if err := errors.Join(oci.Write(unfinished, image), unfinished.Chmod(0o644), unfinished.Close()); err != nil {
		return err
	}
	return os.Rename(unfinished.Name(), output)
}

func (o options) image() (oci.Image, error) {
	image := oci.Image{
		Name: o.name, Architecture: runtime.GOARCH,
		Entrypoint:  []string{"/usr/bin/entrypoint.sh", "openshift", "start", "node"},
		Arguments:   []string{"--config=/etc/origin/node/node-config.yaml"},
		Environment: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "origin-node",
			"org.opencontainers.image.version":  o.version,
			"org.opencontainers.image.revision": o.revision,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	for _, root := range []func() (fstest.MapFS, error){o.debian, o.programs} {
		files, err := root()
		if err != nil {
			return image, err
		}
		date(files, o.time)
		layer, err := oci.NewLayer(files)
		if err != nil {
			return image, err
		}
		image.Layers = append(image.Layers, layer)
	}
	return image, nil
}

// programs are ours.
func (o options) programs() (fstest.MapFS, error) {
	root := fstest.MapFS{}
	for name, file := range map[string]string{
		"usr/bin/openshift":       filepath.Join(o.binaries, "openshift"),
		"usr/bin/origin-node-cni": filepath.Join(o.binaries, "origin-node-cni"),
		"usr/bin/entrypoint.sh":   o.entrypoint,
	} {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		root[name] = &fstest.MapFile{Data: content, Mode: 0o755}
	}
	return root, nil
}
