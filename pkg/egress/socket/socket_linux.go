package socket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openshift/origin-node/pkg/wake"
)

// maxPath is the longest path of a socket, without the zero at its end (unix(7)).
const maxPath = len(unix.RawSockaddrUnix{}.Path) - 1

const (
	// readTimeout is how long the header of a request may take to arrive.
	readTimeout = 5 * time.Second
	// endTimeout is how long answers may go on after the server's end.
	endTimeout = time.Second
	// lookPeriod is how often it is seen whether the socket still has its name.
	lookPeriod = 2 * time.Second
)

// Listener is a socket on which a node can be asked.
type Listener struct {
	socket *net.UnixListener
	path   string
	own    fs.FileInfo
}

// Listen makes the socket, and its folder with mode 0700 if it is missing. The socket has mode 0600. What a process that has ended left
// there is replaced; it is an error if a process still answers there, or if something there is no socket. The socket can be used by its
// owner only, from the moment that it has its name: it is made under another one. Either Serve or Close the Listener.
func Listen(path string) (*Listener, error) {
	making := fmt.Sprintf("%s.%d", path, os.Getpid())
	if len(making) > maxPath {
		return nil, fmt.Errorf("socket %s: the path is too long; use one of at most %d bytes", path, maxPath-len(making)+len(path))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("socket %s: making its folder: %w", path, err)
	}
	if err := checkFree(path); err != nil {
		return nil, err
	}
	if err := os.Remove(making); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("socket %s: removing what an earlier process left: %w", path, err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: making, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	listener.SetUnlinkOnClose(false) // it has another name by then
	info, err := publish(making, path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("socket %s: %w", path, err), listener.Close(), os.Remove(making))
	}
	return &Listener{listener, path, info}, nil
}

// Close ends listening, and removes the socket unless another process has replaced it.
func (l *Listener) Close() error {
	err := remove(l.path, l.own)
	if closing := l.socket.Close(); !errors.Is(closing, net.ErrClosed) {
		err = errors.Join(err, closing)
	}
	return err
}

// Answer makes the socket at path and serves requests until ctx ends. After a failure it rests and begins again. told is called with nil
// when the socket is there, and with each failure.
func Answer(ctx context.Context, path string, rest time.Duration, handler http.Handler, errorLog *log.Logger, told func(error)) {
	for {
		l, err := Listen(path)
		if err == nil {
			told(nil)
			err = l.Serve(ctx, handler, errorLog)
		}
		if ctx.Err() != nil {
			return
		}
		told(err)
		if !wake.Sleep(ctx.Done(), rest) {
			return
		}
	}
}

// Serve answers requests until ctx ends, and closes l then. The requests' contexts end with ctx; answers may go on for a
// moment. It is an error, after lookPeriod, if somebody deletes or replaces the socket.
func (l *Listener) Serve(ctx context.Context, handler http.Handler, errorLog *log.Logger) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readTimeout,
		MaxHeaderBytes:    8 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       connContext,
		ErrorLog:          errorLog,
	}
	server.SetKeepAlivesEnabled(false)
	ended := context.AfterFunc(ctx, func() { _ = l.Close() })
	looking, stop := context.WithCancel(ctx)
	lost := make(chan error, 1)
	go func() { lost <- l.awaitLoss(looking) }()
	var on net.Listener = l.socket
	if _, takes := handler.(filesHandler); takes {
		on = filesListener{l.socket}
	}
	err := server.Serve(on)
	stop()
	if ended() { // not by ctx
		if loss := <-lost; loss != nil {
			err = loss
		}
		return errors.Join(fmt.Errorf("serving on %s: %w", l.path, err), l.Close(), end(ctx, server))
	}
	_ = end(ctx, server) // the process ends
	return nil
}

// end lets requests that are under way be answered for a moment.
func end(ctx context.Context, server *http.Server) error {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if server.Shutdown(last) == nil {
		return nil
	}
	return server.Close()
}

// awaitLoss ends listening when the socket has lost its name, so that nobody can ask any more, and returns that as an error; nil when ctx ends.
func (l *Listener) awaitLoss(ctx context.Context) error {
	for wake.Sleep(ctx.Done(), lookPeriod) {
		info, err := os.Lstat(l.path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(info, l.own) {
			return errors.Join(errors.New("other software has deleted or replaced the socket"), l.socket.Close())
		}
	}
	return nil
}

// publish gives the socket its mode and then its name.
func publish(making, path string) (fs.FileInfo, error) {
	if err := os.Chmod(making, 0o600); err != nil {
		return nil, err
	}
	info, err := os.Lstat(making)
	if err != nil {
		return nil, err
	}
	return info, os.Rename(making, path)
}

// checkFree returns an error if something is at path that may not be replaced.
func checkFree(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("socket %s: %w", path, err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("socket %s: something that is no socket is there (%s); move it away, or choose another path", path, info.Mode())
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		conn.Close()
		return fmt.Errorf("socket %s: another process listens there; end it, or choose another path", path)
	}
	if !errors.Is(err, unix.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("socket %s: seeing whether another process listens there: %w", path, err)
	}
	return nil
}

// remove removes the socket unless somebody else's is there.
func remove(path string, own fs.FileInfo) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(info, own) {
		return nil
	}
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		return fmt.Errorf("socket %s: removing it: %w", path, err)
	}
	return nil
}

// Write answers with a document, which the reader may leave unread for as long as patience. It may be called again for the next document.
func Write(w http.ResponseWriter, code int, document any, patience time.Duration) error {
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	if code != http.StatusOK {
		w.WriteHeader(code)
	}
	return json.NewEncoder(w).Encode(document)
}

type peerKey struct{}

// connContext is for an http.Server: it notes who has connected. What cannot be found out is not noted, which lets nobody in.
func connContext(ctx context.Context, conn net.Conn) context.Context {
	if files, is := conn.(*filesConn); is {
		ctx, conn = context.WithValue(ctx, filesKey{}, files), files.UnixConn
	}
	if peer, err := Credentials(conn.(*net.UnixConn)); err == nil {
		return WithPeer(ctx, peer.Uid)
	}
	return ctx
}

// WithPeer notes the user that has connected.
func WithPeer(ctx context.Context, uid uint32) context.Context {
	return context.WithValue(ctx, peerKey{}, uid)
}

// Peer returns the user whose request has a context; not known if it was not noted.
func Peer(ctx context.Context) (uid uint32, known bool) {
	uid, known = ctx.Value(peerKey{}).(uint32)
	return uid, known
}

// Credentials returns the process and the user on the other side of a connection, as the kernel noted them when that side connected, or
// listened (SO_PEERCRED, unix(7)). The process is 0 if this one cannot see it.
func Credentials(conn *net.UnixConn) (credentials *unix.Ucred, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		credentials, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, failed); err != nil {
		return nil, fmt.Errorf("asking for the peer's credentials: %w", err)
	}
	return credentials, nil
}
