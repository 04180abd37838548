package scale

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/pkg/egress/holders"
)

// standIns watch the Leases in the place of nodes, each on a connection of its own.
type standIns struct {
	end     context.CancelFunc
	running sync.WaitGroup
	all     []*standIn
}

// standIn notes when it was told that the moved address has another holder.
type standIn struct {
	mu sync.Mutex
	// epoch is the highest of the address that it was told, at a time.
	epoch uint64
	at    time.Time
	// ended is why the watch ended.
	ended error
}

// startStandIns returns when so many watch. host is where they connect from, and config that of a client.
func startStandIns(ctx context.Context, n int, host *lab.Host, config *rest.Config) (*standIns, error) {
	const workers = 20
	secure, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(ctx)
	s := &standIns{end: end}
	errs := make(chan error, n)
	starts := make(chan *standIn)
	for range workers {
		s.running.Go(func() {
			for one := range starts {
				body, err := watchLeases(ctx, host, config.Host, secure)
				errs <- err
				if err == nil {
					s.running.Go(func() { one.read(body) })
				}
			}
		})
	}
	for range n {
		one := &standIn{}
		s.all = append(s.all, one)
		starts <- one
	}
	close(starts)
	for range n {
		if err := <-errs; err != nil {
			s.stop()
			return nil, fmt.Errorf("watch Leases as a stand-in: %w", err)
		}
	}
	return s, nil
}

// asNodes is the query by which nodes watch: with what there is at first, which the API server compresses, and all that follows.
const asNodes = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"

// watchLeases begins a watch such as nodes have, on a connection of its own.
func watchLeases(ctx context.Context, host *lab.Host, server string, secure *tls.Config) (io.ReadCloser, error) {
	transport := &http.Transport{DialContext: host.DialContext, TLSClientConfig: secure.Clone(), ForceAttemptHTTP2: true}
	url := fmt.Sprintf("%s/apis/coordination.k8s.io/v1/namespaces/%s/leases?%s", server, holders.DefaultNamespace, asNodes)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/vnd.kubernetes.protobuf;stream=watch")
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s: %s", url, response.Status), response.Body.Close())
	}
	return watched{response.Body, transport}, nil
}

// watched is the body of a watch, which ends its connection as well.
type watched struct {
	io.ReadCloser
	connection *http.Transport
}

func (w watched) Close() error {
	defer w.connection.CloseIdleConnections()
	return w.ReadCloser.Close()
}

// read notes what is told, until the watch ends.
func (s *standIn) read(body io.ReadCloser) {
	defer body.Close()
	var buffer [4 << 10]byte
	kept := 0 // bytes at the beginning that were there before
	for {
		n, err := body.Read(buffer[kept:])
		now := time.Now()
		told := buffer[:kept+n]
		if epoch := lastEpoch(told); epoch > 0 {
			s.note(epoch, now)
		}
		if err != nil {
			s.mu.Lock()
			s.ended = err
			s.mu.Unlock()
			return
		}
		kept = copy(buffer[:], told[max(0, len(told)-longest):])
	}
}

func (s *standIn) note(epoch uint64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if epoch > s.epoch {
		s.epoch, s.at = epoch, now
	}
}

// mark stands in front of the moved address's epoch in a Lease. longest is more than it and an epoch have together.
var mark = []byte(`"` + moved.egressIP.String() + `":{"epoch":`)

const longest = 64

// lastEpoch returns the epoch that a piece of a watch has last; 0 if it has none that is complete.
func lastEpoch(text []byte) (epoch uint64) {
	for {
		_, rest, found := bytes.Cut(text, mark)
		if !found {
			return epoch
		}
		digits, _, complete := bytes.Cut(rest, []byte("}"))
		if n, err := strconv.ParseUint(string(digits), 10, 64); complete && err == nil {
			epoch = max(epoch, n)
		}
		text = rest
	}
}

// told returns when each was told of an epoch, in order, and how many were not yet. It is an error if a watch has ended.
func (s *standIns) told(epoch uint64) (times []time.Time, missing int, err error) {
	for _, one := range s.all {
		one.mu.Lock()
		switch {
		case one.epoch >= epoch:
			times = append(times, one.at)
		case one.ended != nil:
			err = fmt.Errorf("the watch of a stand-in has ended: %w", one.ended)
		default:
			missing++
		}
		one.mu.Unlock()
	}
	slices.SortFunc(times, time.Time.Compare)
	return times, missing, err
}

// stop ends all watches.
func (s *standIns) stop() {
	s.end()
	s.running.Wait()
}
