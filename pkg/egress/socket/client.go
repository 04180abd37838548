package socket

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

// Request is what the process that listens on a socket is asked.
type Request struct {
	Method, Path string
	// Body is sent as JSON, unless it is nil.
	Body any
	// File is passed with the request, unless it is nil. It stays the caller's.
	File *os.File
}

// Ask makes one request on the socket at path, and returns the body of the answer, which the caller closes. An answer other than 2xx is an
// error: refusal, a pointer, if it can be decoded into that.
func Ask(ctx context.Context, path string, asked Request, refusal error) (io.ReadCloser, error) {
	var body io.Reader
	if asked.Body != nil {
		encoded, err := json.Marshal(asked.Body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, asked.Method, "http://node"+asked.Path, body) // nobody looks the host up
	if err != nil {
		return nil, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	dialed := func(context.Context, string, string) (net.Conn, error) {
		return &passingConn{UnixConn: conn.(*net.UnixConn), file: asked.File}, nil
	}
	response, err := (&http.Transport{DialContext: dialed, DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		_ = conn.Close() // nothing is lost
		return nil, err
	}
	if response.StatusCode/100 == 2 {
		return response.Body, nil
	}
	defer response.Body.Close()
	if err := json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(refusal); err != nil || refusal.Error() == "" {
		return nil, fmt.Errorf("the node answered %s", response.Status)
	}
	return nil, refusal
}
