package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/openshift/origin-node/pkg/fileerror"
)

// maxFileSize is more than any folder for one node needs, and little enough to
// read by mistake.
const maxFileSize = 64 << 20

// Error is one thing wrong with a folder of manifests.
type Error = fileerror.Error

// Objects are the objects of a folder. They are defaulted and valid, sorted by
// namespace and name, and the same for the same files. Endpoints are among the
// EndpointSlices. They are shared and must not be changed.
type Objects struct {
	Services       []*v1.Service
	EndpointSlices []*discoveryv1.EndpointSlice
	Nodes          []*v1.Node
	Namespaces     []*v1.Namespace
	ServiceCIDRs   []*networkingv1.ServiceCIDR
	Networks       []*configv1.Network // one, "cluster", or none
}

// Load reads every file of dir that is named *.yaml, *.yml or *.json. It reads
// no hidden file and no subfolder. The error names everything that is wrong,
// each with file, line and field, and consists of *Error.
func Load(dir string) (*Objects, error) {
	return newLoader(dir).load()
}

// A loader loads a folder again and again. It keeps what it made of each file,
// so that a change costs what the changed file costs.
type loader struct {
	dir   string
	files map[string]*parsedFile
}

// parsedFile is a file's data and the objects or errors in it.
type parsedFile struct {
	data    []byte
	objects []*object
	errs    []*Error
}

func newLoader(dir string) *loader {
	return &loader{dir: dir, files: map[string]*parsedFile{}}
}

func (l *loader) load() (*Objects, error) {
	names, err := manifestNames(l.dir)
	if err != nil {
		return nil, fileerror.Join([]*Error{{File: l.dir, Err: err}})
	}
	files := make(map[string]*parsedFile, len(names))
	var objects []*object
	var errs []*Error
	for _, name := range names {
		path := filepath.Join(l.dir, name)
		data, err := readFile(path)
		if errors.Is(err, errFolder) {
			continue
		}
		if err != nil {
			errs = append(errs, &Error{File: path, Err: err})
			continue
		}
		file := l.files[path]
		if file == nil || !bytes.Equal(file.data, data) {
			file = &parsedFile{data: data}
			file.objects, file.errs = decodeFile(path, data)
		}
		files[path] = file
		objects = append(objects, file.objects...)
		errs = append(errs, file.errs...)
	}
	l.files = files
	result, conflicts := assemble(objects)
	if err := fileerror.Join(append(errs, conflicts...)); err != nil {
		return nil, err
	}
	return result, nil
}

// manifestNames returns the names of the manifests in dir, sorted.
func manifestNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read folder: %w", reason(err))
	}
	var names []string
	for _, entry := range entries {
		if isManifest(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

func isManifest(name string) bool {
	return !strings.HasPrefix(name, ".") && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
}

var (
	errFolder   = errors.New("is a folder")
	errTooLarge = fmt.Errorf("is larger than %d MiB", maxFileSize>>20)
)

// readFile reads a file of at most maxFileSize. Anything that is not a file
// is refused before it is opened: opening a FIFO would block.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("find file: %w", reason(err))
	case info.IsDir():
		return nil, errFolder
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("is not a regular file (mode %s)", info.Mode())
	case info.Size() > maxFileSize:
		return nil, errTooLarge
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open: %w", reason(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err != nil {
		return nil, fmt.Errorf("read: %w", reason(err))
	}
	if len(data) > maxFileSize { // it has grown
		return nil, errTooLarge
	}
	return data, nil
}

// reason takes the file's name off an error; Error names it already.
func reason(err error) error {
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
