package kept

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
)

// Folder is where a node keeps files if nothing else is said. It outlives a reboot.
const Folder = "/var/lib/origin-node"

// checksum is in front of the last line's.
const checksum = "sha256:"

func sum(text []byte) []byte { return fmt.Appendf(nil, "%s%x\n", checksum, sha256.Sum256(text)) }

// Load returns what is in a file, of which it reads so many bytes at most; nothing if there is no such file. It is an error, which
// names the file, if that is not as Save writes it.
func Load(path string, most int64) ([]byte, error) {
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
	text, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return nil, err
	}
	at := bytes.LastIndex(text, []byte(checksum))
	if at < 0 || !bytes.Equal(text[at:], sum(text[:at])) {
		return nil, fmt.Errorf("%s: the checksum at its end is wrong", path)
	}
	return text[:at], nil
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

// Save replaces a file as a whole, and returns when it is there after a loss of power, too, if the file system can say so. Its last line must end. It makes the file's
// folder if it is missing. The same failure has the same words each time.
func Save(path string, text []byte) error {
	folder, making := filepath.Dir(path), "."+filepath.Base(path)+"-"
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return named(path, err)
	}
	left, _ := filepath.Glob(filepath.Join(folder, making+"*")) // of a process that was killed while it wrote
	for _, path := range left {
		_ = os.Remove(path)
	}
	if err := named(path, replace(path, making, append(bytes.Clone(text), sum(text)...), true)); err != nil {
		return err
	}
	_ = syncFolder(folder) // what is kept can be found out again
	return nil
}

// Replace replaces a file as a whole, by one that only this user may read. As long as it is not whole, its name begins with making. With
// durable the file is there after a loss of power, too. The same failure has the same words each time.
func Replace(path, making string, content []byte, durable bool) error {
	err := replace(path, making, content, durable)
	if err == nil && durable {
		err = syncFolder(filepath.Dir(path))
	}
	return named(path, err)
}

// named returns err with a path in the place of the temporary one, which is another each time.
func named(path string, err error) error {
	var ofFile *fs.PathError
	var ofRename *os.LinkError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ofFile):
		err = ofFile.Err
	case errors.As(err, &ofRename):
		err = ofRename.Err
	}
	return fmt.Errorf("write %s: %w", path, err)
}

func replace(path, making string, content []byte, durable bool) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), making)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	_, err = file.Write(content)
	if durable {
		err = errors.Join(err, file.Sync())
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// Remove removes a file, if it is there.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
