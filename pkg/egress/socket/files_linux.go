package socket

import (
	"context"
	"net"
	"net/http"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// WithFiles has a handler's requests come with a file that the other side passes: see [TakeFile]. To other handlers nobody can pass one.
func WithFiles(h http.Handler) http.Handler { return filesHandler{h} }

type filesHandler struct{ http.Handler }

// filesListener is a listener whose connections take a file.
type filesListener struct{ *net.UnixListener }

func (l filesListener) Accept() (net.Conn, error) {
	conn, err := l.AcceptUnix()
	if err != nil {
		return nil, err
	}
	return &filesConn{UnixConn: conn}, nil
}

// filesConn keeps the last file that came with what was read, until somebody takes it, or the connection ends.
type filesConn struct {
	*net.UnixConn
	mu     sync.Mutex
	file   *os.File
	closed bool
}

// Read is part of [net.Conn].
func (c *filesConn) Read(b []byte) (int, error) {
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := c.ReadMsgUnix(b, oob) // what does not fit into oob the kernel closes
	if oobn > 0 {
		c.keep(filesIn(oob[:oobn]))
	}
	return n, err
}

// filesIn returns the files in a control message.
func filesIn(oob []byte) (files []*os.File) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil // from the kernel there is none such
	}
	for _, m := range messages {
		if numbers, err := unix.ParseUnixRights(&m); err == nil {
			for _, fd := range numbers {
				files = append(files, os.NewFile(uintptr(fd), "passed"))
			}
		}
	}
	return files
}

func (c *filesConn) keep(files []*os.File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, file := range files {
		if c.file != nil {
			_ = c.file.Close() // nothing was written
		}
		if c.file = file; c.closed {
			c.file = nil
			_ = file.Close()
		}
	}
}

func (c *filesConn) take() (file *os.File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	file, c.file = c.file, nil
	return file
}

// Close is part of [net.Conn].
func (c *filesConn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	if file := c.take(); file != nil {
		_ = file.Close()
	}
	return c.UnixConn.Close()
}

type filesKey struct{}

// TakeFile returns the file that came with a request, which is the caller's then; nil if none did. One that nobody takes is closed
// with the connection. The context is the request's, to a handler [WithFiles].
func TakeFile(ctx context.Context) *os.File {
	if conn, is := ctx.Value(filesKey{}).(*filesConn); is {
		return conn.take()
	}
	return nil
}

// passingConn passes a file, nil for none, with the first of what is written, by one goroutine.
type passingConn struct {
	*net.UnixConn
	file *os.File
}

// Write is part of [net.Conn].
func (c *passingConn) Write(b []byte) (int, error) {
	file := c.file
	if file == nil || len(b) == 0 {
		return c.UnixConn.Write(b)
	}
	c.file = nil
	n, _, err := c.WriteMsgUnix(b, unix.UnixRights(int(file.Fd())), nil)
	if err != nil || n == len(b) {
		return n, err
	}
	rest, err := c.UnixConn.Write(b[n:])
	return n + rest, err
}
