package keys

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/extension"
	"github.com/openshift/origin-node/pkg/failure"
	"github.com/openshift/origin-node/pkg/wake"
)

const (
	// makeWithin is within which a node makes a key where there is none: thousands of nodes find that out at the same time, and
	// one is enough.
	makeWithin = 300 * time.Millisecond
	// look is how often it is seen whether a step of a rotation is due, and up to as much more.
	look = time.Hour
	// retry is when what failed is tried again, and up to as much more.
	retry = 10 * time.Second
	// patience bounds a request, and how long a node without a key waits for the Secret before it says so.
	patience = 5 * time.Second
)

// Config is what a [Keeper] has to know.
type Config struct {
	Client kubernetes.Interface
	// Namespace is that of the Secret.
	Namespace string
	// File is where this node keeps the keys.
	File string
	// Ring gets the keys.
	Ring *holders.Keyring
	// Explain, if not nil, adds to an error of the client what an operator needs to act on it.
	Explain func(error) error
	// Failing is told what is not in order, and nil when that is over. It must not block.
	Failing func(error)
}

// Keeper keeps the keys of a node as the package's comment says.
type Keeper struct {
	config Config
	// clock returns the time by this node's clock.
	clock func() time.Time
	// wake says that the Secret has changed.
	wake wake.Signal

	mu sync.Mutex
	// secret is the newest version; nil if there is none. known: that is known.
	secret *v1.Secret
	known  bool
	// seen is since when it has this data.
	seen time.Time
	// unread is why the Secret is not read; nil if it is.
	unread error

	// What follows is for the goroutine of Run.
	faults map[fault]*failure.Streak
	told   failure.Streak
	// began is when the Secret was first waited for.
	began time.Time
	// saved are the keys in the file. makeAt is when to make a key; zero if nobody has to.
	saved  holders.Keys
	makeAt time.Time
}

// fault is what is not in order.
type fault string

const (
	unread   fault = "it cannot be read"
	unusable fault = "what is in it cannot be used"
	unmade   fault = "it cannot be written"
	unkept   fault = "the keys in it cannot be kept on this node"
)

// New returns the Keeper of a node, and gives the ring the keys of its file.
func New(ctx context.Context, config Config) *Keeper {
	k := &Keeper{config: config, clock: time.Now, wake: wake.New(), faults: map[fault]*failure.Streak{unread: {}, unusable: {}, unmade: {}, unkept: {}}}
	keys, err := load(config.File)
	if k.setFault(ctx, unkept, err); len(keys) > 0 {
		k.saved = keys
		config.Ring.Set(keys)
	}
	return k
}

// Run keeps the keys until ctx ends. Failures are logged, told and tried again.
func (k *Keeper) Run(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { k.watch(ctx) })
	k.wake.Send()
	k.wake.FollowAt(ctx, func() time.Time {
		again := k.step(ctx, k.clock())
		k.tell()
		return time.Now().Add(again)
	})
}

// step does what is due, and returns after how long there may be something to do again.
func (k *Keeper) step(ctx context.Context, now time.Time) (again time.Duration) {
	k.mu.Lock()
	secret, known, seen, err := k.secret, k.known, k.seen, k.unread
	k.mu.Unlock()
	if err == nil && secret == nil {
		var wait time.Duration
		if wait, err = k.absent(known, now); wait > 0 {
			return wait
		}
	}
	if k.setFault(ctx, unread, err); secret == nil {
		return wait.Jitter(look, 1)
	}
	s, err := read(secret)
	if k.setFault(ctx, unusable, err); err != nil {
		return wait.Jitter(look, 1)
	}
	if len(s.keys) > 0 {
		k.makeAt = time.Time{}
		k.config.Ring.Set(s.keys)
	} else if k.makeAt.IsZero() {
		k.makeAt = now.Add(rand.N(makeWithin))
	}
	if wait := k.makeAt.Sub(now); !k.makeAt.IsZero() && wait > 0 {
		return wait
	}
	switch next, due := s.next(now); {
	case !due:
		k.setFault(ctx, unmade, nil) // maybe another node has written what this one could not
	case len(s.keys) == 0 || now.Sub(seen) >= distribution: // clocks may be wrong; this is no time of day
		k.write(ctx, secret, next)
	}
	k.keep(ctx)
	if k.faults[unmade].Err() != nil || k.faults[unkept].Err() != nil {
		return wait.Jitter(retry, 1)
	}
	return wait.Jitter(look, 1)
}

// absent returns why there is no Secret to read, where nothing has failed; nil if that is no fault, and after how long it may be one.
func (k *Keeper) absent(known bool, now time.Time) (wait time.Duration, err error) {
	if k.began.IsZero() {
		k.began = now
	}
	switch wait = k.began.Add(patience).Sub(now); {
	case known:
		return 0, errMissing
	case len(k.config.Ring.Keys()) > 0:
		return 0, nil
	case wait > 0:
		return wait, nil
	}
	return 0, errUnanswered
}

// write has the Secret have other keys, unless somebody has changed it meanwhile: that one's count. The next step takes them.
func (k *Keeper) write(ctx context.Context, secret *v1.Secret, next shared) {
	request, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	written, err := k.config.Client.CoreV1().Secrets(k.config.Namespace).Update(request, next.in(secret), metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		err = nil // the watch brings it
	}
	if k.setFault(ctx, unmade, holders.Explain(err, k.config.Explain)); err != nil || written == nil || len(written.Data) == 0 {
		return
	}
	klog.FromContext(ctx).Info("Changed the keys that the nodes share", "secret", klog.KObj(secret), "step", next.step, "keys", len(next.keys))
	k.change(func() {
		if k.secret == secret { // otherwise the watch has brought this one, or a newer one
			k.secret, k.seen = written, k.clock()
		}
	})
}

// keep keeps the keys on this node, if there are others than it has kept.
func (k *Keeper) keep(ctx context.Context) {
	keys := k.config.Ring.Keys()
	if len(keys) == 0 || k.faults[unkept].Err() == nil && keys.Equal(k.saved) {
		return
	}
	err := save(k.config.File, keys)
	if k.setFault(ctx, unkept, err); err == nil {
		k.saved = slices.Clone(keys)
	}
}

// setFault notes what is not in order, or with nil that it is, and logs what is new.
func (k *Keeper) setFault(ctx context.Context, f fault, err error) {
	logger := klog.FromContext(ctx)
	switch news := k.faults[f].Changes(err); {
	case !news || ctx.Err() != nil:
	case err != nil:
		logger.Error(err, "The keys by which the nodes know each other are not in order; will retry, the same failure is not logged again",
			"fault", f, "secret", klog.KObj(object(k.config.Namespace)), "file", k.config.File, "hasKeys", len(k.config.Ring.Keys()) > 0)
	default:
		logger.Info("The keys by which the nodes know each other are in order again", "fault", f)
	}
}

// tell tells what is not in order, if that has changed.
func (k *Keeper) tell() {
	var errs []error
	for _, f := range []fault{unread, unusable, unmade, unkept} {
		if err := k.faults[f].Err(); err != nil {
			errs = append(errs, fmt.Errorf("the Secret %s/%s: %s: %w", k.config.Namespace, SecretName, f, err))
		}
	}
	if err := errors.Join(errs...); k.told.Changes(err) {
		k.config.Failing(err)
	}
}

// watch takes the Secret's versions until ctx ends.
func (k *Keeper) watch(ctx context.Context) {
	informer := cache.NewSharedIndexInformer(k.source(), &v1.Secret{}, 0, nil)
	_ = informer.SetWatchErrorHandlerWithContext(k.failed) // it fails for a running informer only
	known := func() { k.change(func() { k.known = true }) }
	extension.Follow(ctx, informer, extension.Handler(k.set, func(cache.ObjectName) { k.set(nil) }), known)
	informer.RunWithContext(ctx)
}

// source lists and watches the Secret, by its name alone.
func (k *Keeper) source() cache.ListerWatcher {
	secrets := k.config.Client.CoreV1().Secrets(k.config.Namespace)
	byName := func(options metav1.ListOptions) metav1.ListOptions {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, SecretName).String()
		return options
	}
	return holders.ListWatch{Client: k.config.Client, ListWatch: &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return secrets.List(ctx, byName(options))
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			changes, err := secrets.Watch(ctx, byName(options))
			if err == nil {
				k.change(func() { k.unread = nil })
			}
			return changes, err
		},
	}}
}

// failed is called when a list or a watch fails. An API server that is away, or busy, or a watch that ends, is no fault of the keys as long
// as there are some.
func (k *Keeper) failed(_ context.Context, _ *cache.Reflector, err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return // watches end like this
	}
	away := apierrors.ReasonForError(err) == metav1.StatusReasonUnknown
	busy := apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
	if (away || busy) && len(k.config.Ring.Keys()) > 0 {
		return
	}
	k.change(func() { k.unread = holders.Explain(err, k.config.Explain) })
}

// set takes a version of the Secret; nil for none. Whoever changes its labels or annotations does not put off a rotation.
func (k *Keeper) set(secret *v1.Secret) {
	k.change(func() {
		if secret == nil || k.secret == nil || !maps.EqualFunc(secret.Data, k.secret.Data, bytes.Equal) {
			k.seen = k.clock()
		}
		k.secret, k.known = secret, true
	})
}

func (k *Keeper) change(set func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	set()
	k.wake.Send()
}
