package keys

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/holders"
)

// apiServer is one that keeps the Secret as a real one does: an update must name the version that it changes. What a real one does
// with the same requests is in hack/e2e.
type apiServer struct {
	*testing.T
	*fake.Clientset

	mu      sync.Mutex
	refuses error
	writes  int
	// unwritten is why nothing can be written; nil if it can. answered is done before a write is answered.
	unwritten error
	answered  func()
}

func newAPIServer(t *testing.T, objects ...runtime.Object) *apiServer {
	s := &apiServer{T: t, Clientset: fake.NewClientset(objects...)}
	s.PrependReactor("*", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		update, is := action.(clienttesting.UpdateAction)
		if s.refuses != nil || !is {
			return s.refuses != nil, nil, s.refuses
		}
		now, err := s.Tracker().Get(v1.SchemeGroupVersion.WithResource("secrets"), "origin-node", SecretName)
		if err != nil {
			return true, nil, err
		}
		if s.unwritten != nil {
			return true, nil, s.unwritten
		}
		updated := update.GetObject().(*v1.Secret)
		if version := now.(*v1.Secret).ResourceVersion; updated.ResourceVersion != version {
			return true, nil, apierrors.NewConflict(v1.Resource("secrets"), SecretName, fmt.Errorf("version %s, not %s", version, updated.ResourceVersion))
		}
		s.writes++
		updated = updated.DeepCopy()
		updated.ResourceVersion = strconv.Itoa(100 + s.writes)
		if err = s.Tracker().Update(v1.SchemeGroupVersion.WithResource("secrets"), updated, "origin-node"); s.answered != nil {
			s.answered()
		}
		return true, updated, err
	})
	s.PrependWatchReactor("secrets", func(clienttesting.Action) (bool, watch.Interface, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.refuses != nil, nil, s.refuses
	})
	return s
}

func (s *apiServer) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuses = err
}

// put has the Secret be another one.
func (s *apiServer) put(secret *v1.Secret, version string) {
	s.Helper()
	secret = secret.DeepCopy()
	secret.ResourceVersion = version
	if err := s.Tracker().Update(v1.SchemeGroupVersion.WithResource("secrets"), secret, "origin-node"); err != nil {
		s.Error(err)
	}
}

// written is how often the Secret was changed by nodes.
func (s *apiServer) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// empty has the Secret be as it is shipped.
func (s *apiServer) empty(version string) {
	s.Helper()
	s.put(object("origin-node"), version)
}

// node is one that shares keys.
type node struct {
	ring *holders.Keyring
	file string

	mu      sync.Mutex
	failing error
	log     []string
}

// start runs a node until the test ends.
func (s *apiServer) start(file string) *node { return s.startAt(file, 0) }

// startAt is start, with a clock that is wrong by so much.
func (s *apiServer) startAt(file string, ahead time.Duration) *node {
	n := &node{ring: holders.NewKeyring(nil), file: file}
	ctx, cancel := context.WithCancel(klog.NewContext(s.Context(), funcr.New(func(_, args string) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.log = append(n.log, args)
	}, funcr.Options{})))
	keeper := New(ctx, Config{Client: s.Clientset, Namespace: "origin-node", File: file, Ring: n.ring, Failing: func(err error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.failing = err
	}})
	keeper.clock = func() time.Time { return time.Now().Add(ahead) }
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		keeper.Run(ctx)
	}()
	s.Cleanup(func() {
		cancel()
		<-ended
	})
	return n
}

func (n *node) fails() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return fmt.Sprint(n.failing)
}

func (n *node) logged() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.log)
}

// made is the Secret with a key that some node has made, which it returns as well.
func made() (*v1.Secret, holders.Keys) {
	s, _ := shared{}.next(time.Now())
	return s.in(shipped()), s.keys
}

func shipped() *v1.Secret {
	secret := object("origin-node")
	secret.ResourceVersion = "1"
	return secret
}

// bubble runs a test in a time of its own.
func bubble(t *testing.T, test func(t *testing.T)) { synctest.Test(t, test) }

// same fails unless all nodes have the same keys, so many, which it returns.
func same(t *testing.T, number int, nodes ...*node) holders.Keys {
	t.Helper()
	keys := nodes[0].ring.Keys()
	for i, n := range nodes {
		if !n.ring.Keys().Equal(keys) || len(keys) != number {
			t.Fatalf("node %d has %d keys, and the first %d; want the same, %d", i, len(n.ring.Keys()), len(keys), number)
		}
		if kept, err := load(n.file); err != nil || !kept.Equal(keys) {
			t.Fatalf("node %d keeps %d other keys, %v", i, len(kept), err)
		}
	}
	return keys
}

// TestKeeper_OneKeyOfMany: nodes that start at the same time agree on one key.
func TestKeeper_OneKeyOfMany(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newAPIServer(t, shipped())
		var nodes []*node
		for range 10 {
			nodes = append(nodes, s.start(filepath.Join(t.TempDir(), "keys")))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		same(t, 1, nodes...)
		if n := s.written(); n != 1 {
			t.Errorf("written %d times", n)
		}
		for _, n := range nodes {
			if n.fails() != "<nil>" {
				t.Errorf("it tells %s", n.fails())
			}
		}
	})
}

// TestKeeper_Rotates: over months, one step after the other, each written once, and all nodes have the same.
func TestKeeper_Rotates(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newAPIServer(t, shipped())
		var nodes []*node
		for range 5 {
			nodes = append(nodes, s.start(filepath.Join(t.TempDir(), "keys")))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		before := same(t, 1, nodes...)
		for month := range 3 {
			for _, sleep := range []time.Duration{lifetime, distribution, distribution} {
				time.Sleep(sleep + 4*time.Hour) // it is looked at every so often
				synctest.Wait()
				keys := nodes[0].ring.Keys()
				same(t, len(keys), nodes...)
			}
			after := same(t, 1, nodes...)
			if after.Equal(before) {
				t.Errorf("month %d: the key is as it was", month)
			}
			before = after
		}
		if n := s.written(); n != 1+3*3 {
			t.Errorf("written %d times, want 10", n)
		}
	})
}

// TestKeeper_WrongClockDoesNotRush: whatever clocks nodes have, all of them have a day for each step, and the steps are taken.
func TestKeeper_WrongClockDoesNotRush(t *testing.T) {
	const day = 24 * time.Hour
	for name, ahead := range map[string][]time.Duration{
		"two days behind":  {0, -2 * day},
		"two days ahead":   {0, 2 * day},
		"a year ahead":     {0, 365 * day},
		"both, and behind": {0, 2 * day, -2 * day, -60 * day},
		"all are wrong":    {2 * day, -3 * day},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				first, _ := shared{}.next(time.Now())
				second, _ := first.next(time.Now().Add(lifetime))
				second.changed = time.Now()
				s := newAPIServer(t, second.in(shipped()))
				var nodes []*node
				for _, ahead := range ahead {
					nodes = append(nodes, s.startAt(filepath.Join(t.TempDir(), "keys"), ahead))
				}
				before, since, changes := second.keys, time.Now(), 0
				for range 10 * 24 * 6 {
					time.Sleep(10 * time.Minute)
					synctest.Wait()
					keys := nodes[0].ring.Keys()
					if keys.Equal(before) {
						continue
					}
					if passed := time.Since(since); passed < day {
						t.Errorf("change %d comes after %v", changes, passed)
					}
					before, since, changes = keys, time.Now(), changes+1
				}
				if changes < 2 {
					t.Errorf("in ten days the keys have changed %d times, want that the rotation ends", changes)
				}
				same(t, len(before), nodes...)
			})
		})
	}
}

// TestKeeper_RotatesWhatIsTouched: whoever changes something else of the Secret over and over does not stop the rotation.
func TestKeeper_RotatesWhatIsTouched(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newAPIServer(t, shipped())
		n := s.start(filepath.Join(t.TempDir(), "keys"))
		time.Sleep(time.Second)
		synctest.Wait()
		before := same(t, 1, n)
		for hour := 0; time.Duration(hour)*time.Hour < lifetime+2*distribution+12*time.Hour; hour += 6 {
			time.Sleep(6 * time.Hour)
			synctest.Wait()
			now, err := s.CoreV1().Secrets("origin-node").Get(t.Context(), SecretName, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			now.Annotations = map[string]string{"touched": strconv.Itoa(hour)}
			s.put(now, strconv.Itoa(10000+hour))
		}
		synctest.Wait()
		if after := same(t, 1, n); after.Equal(before) {
			t.Error("the key is as it was")
		}
	})
}

// TestKeeper_EmptiedAtOnce: whoever empties the Secret has all keys replaced.
func TestKeeper_EmptiedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newAPIServer(t, shipped())
		a, b := s.start(filepath.Join(t.TempDir(), "keys")), s.start(filepath.Join(t.TempDir(), "keys"))
		time.Sleep(time.Second)
		synctest.Wait()
		before := same(t, 1, a, b)
		s.empty("50")
		time.Sleep(time.Second)
		synctest.Wait()
		if after := same(t, 1, a, b); after.Equal(before) {
			t.Error("the key is as it was")
		}
	})
}

// TestKeeper_AnotherNodeWrites: a node that could not write has no fault any more when another one has.
func TestKeeper_AnotherNodeWrites(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newAPIServer(t, shipped())
		s.unwritten = apierrors.NewServiceUnavailable("it is overloaded")
		n := s.start(filepath.Join(t.TempDir(), "keys"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if !strings.Contains(n.fails(), "it cannot be written") {
			t.Errorf("it tells %s", n.fails())
		}
		secret, keys := made()
		s.put(secret, "50")
		time.Sleep(time.Second)
		synctest.Wait()
		if got := same(t, 1, n); !got.Equal(keys) || n.fails() != "<nil>" {
			t.Errorf("it has %q, and tells %s", got, n.fails())
		}
	})
}

// TestKeeper_LateAnswer: the answer to a write does not replace what somebody has written since.
func TestKeeper_LateAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newAPIServer(t, shipped())
		newer, keys := made()
		s.answered = func() {
			s.put(newer, "50")
			time.Sleep(time.Second) // the watch brings it
		}
		n := s.start(filepath.Join(t.TempDir(), "keys"))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if got := same(t, 1, n); s.written() != 1 || !got.Equal(keys) {
			t.Errorf("it has written %d times, and has %q, want what was written after it: %q", s.written(), got, keys)
		}
	})
}

// TestKeeper_KeepsWhatItHas: without the right, without the Secret, and with something else in it, a node goes on with its
// keys, says what to do, and recovers. A process that starts then has the keys of the file.
func TestKeeper_KeepsWhatItHas(t *testing.T) {
	forbidden := apierrors.NewForbidden(v1.Resource("secrets"), SecretName, errors.New("no right"))
	for name, test := range map[string]struct {
		damage func(s *apiServer)
		repair func(s *apiServer)
		says   []string
	}{
		"without the right": {func(s *apiServer) { s.refuse(forbidden) }, func(s *apiServer) { s.refuse(nil) },
			[]string{"the Secret origin-node/origin-node-keys: it cannot be read", "forbidden", "apply images/node/rbac.yaml"}},
		"deleted": {func(s *apiServer) {
			_ = s.Tracker().Delete(v1.SchemeGroupVersion.WithResource("secrets"), "origin-node", SecretName)
		}, func(s *apiServer) { _ = s.Tracker().Add(shipped()) }, []string{"does not exist: apply images/node/rbac.yaml"}},
		"garbage": {func(s *apiServer) {
			secret := shipped()
			secret.ResourceVersion, secret.Data = "60", map[string][]byte{keysEntry: {0xff, '\n', 0}}
			_ = s.Tracker().Update(v1.SchemeGroupVersion.WithResource("secrets"), secret, "origin-node")
		}, func(s *apiServer) { s.empty("70") }, []string{"what is in it cannot be used: data.keys: line 1", "kubectl -n origin-node patch secret"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newAPIServer(t, shipped())
				file := filepath.Join(t.TempDir(), "keys")
				n := s.start(file)
				time.Sleep(time.Second)
				synctest.Wait()
				before := same(t, 1, n)
				test.damage(s)
				time.Sleep(2 * time.Minute)
				again := s.start(file)
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				for i, n := range []*node{n, again} {
					if i == 0 && name == "without the right" {
						continue // its watch goes on
					}
					for _, words := range test.says {
						if !strings.Contains(n.fails(), words) {
							t.Errorf("process %d says %s; want %q", i, n.fails(), words)
						}
					}
				}
				if !same(t, 1, n, again).Equal(before) {
					t.Error("it has other keys")
				}
				test.repair(s)
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				if same(t, 1, n, again); n.fails() != "<nil>" || again.fails() != "<nil>" {
					t.Errorf("repaired, it tells %s, %s", n.fails(), again.fails())
				}
			})
		})
	}
}

// TestKeeper_NoSecret: a new node without keys has none, and says so, until there is a Secret.
func TestKeeper_NoSecret(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newAPIServer(t)
		n := s.start(filepath.Join(t.TempDir(), "keys"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(n.ring.Keys()) > 0 || !strings.Contains(n.fails(), "apply images/node/rbac.yaml") || len(n.logged()) != 1 {
			t.Errorf("it has %d keys, tells %s and logs %q", len(n.ring.Keys()), n.fails(), n.logged())
		}
		if err := s.Tracker().Add(shipped()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if same(t, 1, n); n.fails() != "<nil>" {
			t.Errorf("it tells %s", n.fails())
		}
	})
}

// TestKeeper_NoAnswer: a new node without keys says why it has none, also if connections break, or nothing is answered. One that has keys
// goes on with them in silence.
func TestKeeper_NoAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		refuses error
		says    string
	}{
		"a list breaks":       {&url.Error{Op: "Get", URL: "https://api", Err: io.ErrUnexpectedEOF}, "Get \"https://api\": unexpected EOF"},
		"a connection closes": {io.EOF, "it cannot be read: failed to list *v1.Secret: EOF"},
		"a server that ends":  {apierrors.NewServiceUnavailable("shutting down"), "shutting down"},
		"a server is busy":    {apierrors.NewTooManyRequests("busy", 1), "busy"},
		"nothing is answered": {nil, "it cannot be read: the API server has not answered yet"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newAPIServer(t, shipped())
				file := filepath.Join(t.TempDir(), "keys")
				answer := make(chan struct{})
				if s.refuse(test.refuses); test.refuses == nil {
					s.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) { <-answer; return false, nil, nil })
				}
				n := s.start(file)
				time.Sleep(time.Minute)
				synctest.Wait()
				if len(n.ring.Keys()) > 0 || !strings.Contains(n.fails(), test.says) || len(n.logged()) != 1 {
					t.Errorf("it has %d keys, tells %s and logs %q", len(n.ring.Keys()), n.fails(), n.logged())
				}
				s.refuse(nil)
				close(answer)
				time.Sleep(time.Minute)
				synctest.Wait()
				if same(t, 1, n); n.fails() != "<nil>" {
					t.Errorf("it tells %s", n.fails())
				}
				s.refuse(cmp.Or(test.refuses, io.EOF))
				again := s.start(file)
				time.Sleep(time.Minute)
				synctest.Wait()
				if same(t, 1, n, again); again.fails() != "<nil>" {
					t.Errorf("with keys it tells %s", again.fails())
				}
			})
		})
	}
}

// TestKeeper_BrokenFile is told, not trusted, and replaced by what is in the Secret. A folder that cannot be written is told.
func TestKeeper_BrokenFile(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newAPIServer(t)
		file := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(file, []byte("a key that somebody has written there\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		n := s.start(file)
		time.Sleep(time.Second)
		synctest.Wait()
		if len(n.ring.Keys()) > 0 || !strings.Contains(n.fails(), file+": the checksum at its end is wrong") {
			t.Errorf("it has %q, and tells %s", n.ring.Keys(), n.fails())
		}
		if err := s.Tracker().Add(shipped()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		same(t, 1, n)
		other := s.start(filepath.Join(file, "below a file"))
		time.Sleep(time.Second)
		synctest.Wait()
		if len(other.ring.Keys()) != 1 || !strings.Contains(other.fails(), "the keys in it cannot be kept on this node") {
			t.Errorf("it has %d keys, and tells %s", len(other.ring.Keys()), other.fails())
		}
	})
}
