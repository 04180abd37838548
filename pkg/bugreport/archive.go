package bugreport

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// patience bounds a part.
	patience = 20 * time.Second
	// mostBytes bounds a part; of a longer one the end is kept.
	mostBytes = 32 << 20
)

// Part is a file of an archive.
type Part struct {
	Name string
	// Make returns the content. With an error, it may return what there is of it.
	Make func(ctx context.Context) ([]byte, error)
}

// Write writes an archive of parts at path, with mode 0600, in one step. Everything in it is below a folder of the archive's
// name. It calls failed for each part that cannot be made, or is not complete; the archive names it, too.
func Write(ctx context.Context, path string, blank *Blanker, parts []Part, failed func(name string, err error)) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), ".collect-*") // mode 0600
	if err != nil {
		return fmt.Errorf("create the archive: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write the archive: %w", err), os.Remove(file.Name()))
		}
	}()
	folder := strings.TrimSuffix(filepath.Base(path), ".tar.gz")
	if err := errors.Join(fill(ctx, file, folder, blank, parts, failed), file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// fill writes the archive's content.
func fill(ctx context.Context, w io.Writer, folder string, blank *Blanker, parts []Part, failed func(name string, err error)) error {
	packed := gzip.NewWriter(w)
	archive := tar.NewWriter(packed)
	add := func(name string, content []byte) error {
		header := &tar.Header{Name: folder + "/" + name, Mode: 0o600, Size: int64(len(content)), ModTime: time.Now()}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err := archive.Write(content)
		return err
	}
	var errorsFile strings.Builder
	for _, part := range parts {
		content, err := part.within(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			text := string(blank.Text([]byte(err.Error())))
			failed(part.Name, errors.New(text))
			fmt.Fprintf(&errorsFile, "%s: %s\n", part.Name, text)
		}
		if len(content) == 0 {
			continue
		}
		if err := add(part.Name, blank.Text(content)); err != nil {
			return err
		}
	}
	return errors.Join(add("errors.txt", []byte(errorsFile.String())), archive.Close(), packed.Close())
}

// within makes a part in time.
func (p Part) within(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	content, err := p.Make(ctx)
	if more := len(content) - mostBytes; more > 0 {
		content = content[more:]
		err = errors.Join(err, fmt.Errorf("the first %d bytes are left out", more))
	}
	return content, err
}

// File is a part with a file as it is, but for secrets.
func File(name, path string) Part {
	return Part{name, func(context.Context) ([]byte, error) { return os.ReadFile(path) }}
}
