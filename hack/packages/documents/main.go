// Command documents writes what a package has beside the programs: man pages and completions of openshift, the licences of
// everything that is compiled in, and Debian's changelog.
//
//	documents VERSION SECONDS DIR
//
// It runs at the top of the repository. What it writes depends on the sources, the package's version and its date alone, which
// is given in seconds since 1970.
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/origin-node/pkg/cmd"
)

func main() {
	// No flags: the page of the proxy's arguments has those of this process, too.
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "documents: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return errors.New("usage: documents VERSION SECONDS DIR")
	}
	seconds, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return err
	}
	return write(args[2], args[0], time.Unix(seconds, 0).UTC())
}

// write makes the folder dir with all documents.
func write(dir, version string, date time.Time) error {
	root := cmd.Commands()
	documents, err := completions(root)
	if err != nil {
		return err
	}
	if documents["copyright"], err = copyright("."); err != nil {
		return err
	}
	zipped := manPages(root, version, date)
	zipped["changelog"] = changelog(version, date)
	for name, content := range zipped {
		if documents[name+".gz"], err = zip(content); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, content := range documents {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// completions are the scripts by name.
func completions(root *cobra.Command) (map[string][]byte, error) {
	var bash, fish, zsh bytes.Buffer
	err := errors.Join(root.GenBashCompletionV2(&bash, true), root.GenFishCompletion(&fish, true), root.GenZshCompletion(&zsh))
	return map[string][]byte{"openshift.bash": bash.Bytes(), "openshift.fish": fish.Bytes(), "openshift.zsh": zsh.Bytes()}, err
}

// changelog is that of a Debian package (Debian policy, 4.4). What has changed is in git.
func changelog(version string, date time.Time) []byte {
	return fmt.Appendf(nil, `origin-node (%s) unstable; urgency=medium

  * A build of the sources of this version. Their history is in git.

 -- origin-node maintainers <maintainers@origin-node.invalid>  %s
`, version, date.Format(time.RFC1123Z))
}

// zip compresses like 'gzip -9n'.
func zip(content []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(content)
	err = errors.Join(err, w.Close()) // which writes the end
	return b.Bytes(), err
}
