package attachments

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/openshift/origin-node/pkg/egress/kept"
)

const (
	suffix  = ".json"
	corrupt = ".corrupt"
	making  = ".making-"
)

// write writes an attachment into a folder, which it makes if it is missing.
func write(folder string, a Attachment) error {
	if err := a.Validate(); err != nil {
		return err
	}
	content, err := json.Marshal(a)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	return kept.Replace(fileOf(folder, a.ContainerID), making, append(content, '\n'), false)
}

func fileOf(folder, id string) string { return filepath.Join(folder, id+suffix) }

// Read returns an attachment of a folder. It is fs.ErrNotExist if there is none.
func Read(folder, id string) (Attachment, error) {
	if err := ValidateID(id); err != nil {
		return Attachment{}, err
	}
	path := fileOf(folder, id)
	content, err := os.ReadFile(path)
	if err != nil {
		return Attachment{}, err
	}
	var a Attachment
	if err := json.Unmarshal(content, &a); err != nil {
		return Attachment{}, fmt.Errorf("%s: %w", path, err)
	}
	if err := a.Validate(); err != nil {
		return Attachment{}, fmt.Errorf("%s: %w", path, err)
	}
	if a.ContainerID != id {
		return Attachment{}, fmt.Errorf("%s: it is of the container %s", path, a.ContainerID)
	}
	return a, nil
}

// Peek returns the attachments of a folder, sorted by ID. Files that cannot be read are in err, and stay as they are.
func Peek(folder string) (all []Attachment, err error) {
	return readAll(folder, func(string) error { return nil })
}

// setAside renames a file that cannot be read.
func setAside(path string) error {
	if err := os.Rename(path, path+corrupt); !errors.Is(err, fs.ErrNotExist) { // somebody else may have done it
		return err
	}
	return nil
}

// readAll returns the attachments of a folder, sorted by ID. Files that cannot be read are in err, as are errors of
// unreadable, which is called for each.
func readAll(folder string, unreadable func(path string) error) (all []Attachment, err error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, entry := range entries {
		id, is := strings.CutSuffix(entry.Name(), suffix)
		if !is {
			continue
		}
		a, err := Read(folder, id)
		switch {
		case errors.Is(err, fs.ErrNotExist): // it has gone meanwhile
		case err != nil:
			errs = append(errs, err, unreadable(filepath.Join(folder, entry.Name())))
		default:
			all = append(all, a)
		}
	}
	return all, errors.Join(errs...)
}

// removeUnfinished removes what processes that were killed while they wrote have left before a time.
func removeUnfinished(folder string, before time.Time) error {
	left, err := filepath.Glob(filepath.Join(folder, making+"*"))
	for _, path := range left {
		if info, missing := os.Lstat(path); missing == nil && info.ModTime().Before(before) {
			err = errors.Join(err, kept.Remove(path))
		}
	}
	return err
}

// DefaultSocket is where a node answers the plugin if nothing else is said.
const DefaultSocket = "/run/origin-node/cni.sock"

// Folder returns where a node that answers on a socket keeps its attachments.
func Folder(socket string) string { return filepath.Join(filepath.Dir(socket), "attachments") }

// Released returns the folder in which the plugin leaves notes for a node that answers on a socket.
func Released(socket string) string { return filepath.Join(filepath.Dir(socket), "released") }

// Claims returns the file with the namespaces that have claims, of a node that answers on a socket.
func Claims(socket string) string {
	if socket == DefaultSocket {
		return "/var/lib/origin-node/claims" // which outlives a reboot
	}
	return filepath.Join(filepath.Dir(socket), "claims")
}

// Entry returns the file with the plugin's entry in the list of plugins, of a node that answers on a socket.
func Entry(socket string) string { return filepath.Join(filepath.Dir(Claims(socket)), "cni-entry") }

// Remove removes all that a node keeps which answers on a socket: nobody answers any more, and no pod is to wait.
func Remove(socket string) error {
	return errors.Join(kept.Remove(Claims(socket)), kept.Remove(Entry(socket)), os.RemoveAll(Folder(socket)), os.RemoveAll(Released(socket)))
}

// WriteClaims writes which namespaces have claims. It outlives a loss of power.
func WriteClaims(path string, namespaces []string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("writing the namespaces with claims: %w", err)
	}
	sorted := slices.Sorted(slices.Values(namespaces))
	content := strings.Join(append(slices.Compact(sorted), ""), "\n")
	if err := kept.Replace(path, making, []byte(content), true); err != nil {
		return fmt.Errorf("writing the namespaces with claims: %w", err)
	}
	return nil
}

// ReadClaims returns which namespaces have claims. It is fs.ErrNotExist if no node process has ever said it.
func ReadClaims(path string) (map[string]bool, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the namespaces with claims: %w", err)
	}
	namespaces := map[string]bool{}
	for namespace := range strings.Lines(string(content)) {
		namespaces[strings.TrimSpace(namespace)] = true
	}
	return namespaces, nil
}
