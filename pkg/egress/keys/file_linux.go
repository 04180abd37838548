package keys

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/egress/holders"
)

// DefaultFile is where a node keeps the keys if nothing else is said. It outlives a reboot.
const DefaultFile = "/var/lib/origin-node/keys"

// largestFile is how many bytes of a file are read.
const largestFile = 64 << 10

// making is the beginning of a file's name until it is complete.
const making = ".keys-"

// checksum is in front of the last line's.
const checksum = "sha256:"

func sum(text []byte) []byte { return fmt.Appendf(nil, "%s%x\n", checksum, sha256.Sum256(text)) }

// load returns the keys of a file; none if there is no such file. It is an error if the file is not as save writes it, and then
// there are no keys.
func load(path string) (holders.Keys, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	if err := trusted(file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	text, err := io.ReadAll(io.LimitReader(file, largestFile))
	if err != nil {
		return nil, err
	}
	at := bytes.LastIndex(text, []byte(checksum))
	if at < 0 || !bytes.Equal(text[at:], sum(text[:at])) {
		return nil, fmt.Errorf("%s: the checksum at its end is wrong", path)
	}
	keys, err := holders.ParseKeys(string(text[:at]))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return keys, nil
}

// trusted returns an error if somebody else could have written, or may read, a file.
func trusted(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	switch stat, is := info.Sys().(*syscall.Stat_t); {
	case !info.Mode().IsRegular():
		return errors.New("it is no regular file")
	case is && int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("it belongs to the user %d, not to the one that this process runs as", stat.Uid)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("its mode is %04o, so that others may read or write it", info.Mode().Perm())
	}
	return nil
}

// save replaces a file as a whole, and returns when it is there after a loss of power, too.
func save(path string, keys holders.Keys) (err error) {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	left, _ := filepath.Glob(filepath.Join(folder, making+"*")) // of a process that was killed while it wrote
	for _, path := range left {
		_ = os.Remove(path)
	}
	file, err := os.CreateTemp(folder, making) // which only this user may read
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	text := lines(keys)
	_, err = file.Write(append(text, sum(text)...))
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err = os.Rename(file.Name(), path); err != nil {
		return err
	}
	if opened, missing := os.Open(folder); missing == nil {
		_ = errors.Join(opened.Sync(), opened.Close()) // what is lost is in the Secret
	}
	return nil
}

// Remove removes a file, if it is there.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
