//go:build linux

package machine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/openshift/origin-node/hack/lab"
)

// podPort is the one that the program in pods serves at.
const podPort = 8080

// PodSpec is that of pods which ask at these addresses, as the first thing that they do, who they are seen as.
func PodSpec(asks []netip.AddrPort) v1.PodSpec {
	main := v1.Container{Name: "main", Image: Image, ImagePullPolicy: v1.PullNever}
	for _, address := range asks {
		main.Args = append(main.Args, address.String())
	}
	return v1.PodSpec{
		Containers: []v1.Container{main}, TerminationGracePeriodSeconds: ptr.To[int64](5),
		AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
	}
}

// Answer is what a pod was told of a new flow of its own.
type Answer struct {
	// Seen is the address that the pod was seen as; invalid if nobody answered.
	Seen  netip.Addr
	After time.Duration
}

// First returns what a pod was told of the first flows that it began, in the order of PodSpec's addresses. It asks from a
// host that reaches the pod.
func First(ctx context.Context, from *lab.Host, pod netip.Addr) ([]Answer, error) {
	return ask(ctx, from, pod, "first")
}

// Ask has a pod begin a new flow.
func Ask(ctx context.Context, from *lab.Host, pod netip.Addr, to netip.AddrPort) (Answer, error) {
	answers, err := ask(ctx, from, pod, "ask "+to.String())
	if err != nil || len(answers) != 1 {
		return Answer{}, errors.Join(fmt.Errorf("%d answers", len(answers)), err)
	}
	return answers[0], nil
}

func ask(ctx context.Context, from *lab.Host, pod netip.Addr, question string) ([]Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, lab.Stretch(30*time.Second)) // longer than a pod's patience
	defer cancel()
	c, err := dial(ctx, from, pod)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	answers, err := converse(ctx, c, question)
	if err != nil {
		return nil, fmt.Errorf("ask the pod %s %q: %w", pod, question, err)
	}
	return answers, nil
}

// dial connects to a pod. One that has just started may not listen yet.
func dial(ctx context.Context, from *lab.Host, pod netip.Addr) (net.Conn, error) {
	const again = 20 * time.Millisecond
	for {
		c, err := from.DialContext(ctx, "tcp", netip.AddrPortFrom(pod, podPort).String())
		if !errors.Is(err, unix.ECONNREFUSED) {
			return c, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(again):
		}
	}
}

// converse sends one line, and parses the answer to it, which comes behind a greeting.
func converse(ctx context.Context, c net.Conn, question string) (answers []Answer, err error) {
	if deadline, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	lines := bufio.NewReader(c)
	if _, err := lines.ReadString('\n'); err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintln(c, question); err != nil {
		return nil, err
	}
	line, err := lines.ReadString('\n')
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(line)
	for ; len(fields) >= 2; fields = fields[2:] {
		if fields[0] == "-" {
			answers = append(answers, Answer{})
			continue
		}
		seen, err := netip.ParseAddrPort(fields[0])
		if err != nil {
			return nil, err
		}
		after, err := time.ParseDuration(fields[1])
		if err != nil {
			return nil, err
		}
		answers = append(answers, Answer{seen.Addr().Unmap(), after})
	}
	return answers, nil
}
