package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"

	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/cni"
)

const (
	// askAgain is how long to wait before the node is asked again.
	askAgain = 200 * time.Millisecond
	// lookTime is how much of waitSeconds, at most half, is for the look at the kernel: a node may have hundreds of
	// thousands of rules of others.
	lookTime = 5 * time.Second
	// delWait is how long DEL waits: addresses are to be given back soon, and the node can be told later.
	delWait = 2 * time.Second
	// checkWait is how long CHECK waits where the pod stays without an answer: CRI-O checks one pod after the other when it starts.
	checkWait = 2 * time.Second
	// statusWait is how long STATUS waits for the answer.
	statusWait = 2 * time.Second
)

func add(args *skel.CmdArgs) error {
	c, err := parse(args.StdinData)
	if err != nil {
		return err
	}
	if c.PrevResult == nil {
		return types.NewError(types.ErrInvalidNetworkConfig, "origin-node-cni: there is no prevResult; put it at the end of the list of plugins, behind the one that gives the address", "")
	}
	request, concerned, err := c.requestOf(args)
	if err != nil {
		return err
	}
	if !concerned && c.mayBeBound(request.Pod) {
		return types.NewError(types.ErrTryAgainLater, fmt.Sprintf("origin-node-cni: prevResult has no address of the pod %s, and Services of its namespace may claim it", request.Pod), "")
	}
	if concerned {
		ports, err := c.attach(request)
		if err != nil {
			return types.NewError(types.ErrTryAgainLater, fmt.Sprintf("origin-node-cni: the pod %s must wait", request.Pod), err.Error())
		}
		if err := c.giveLocalPorts(request, ports); err != nil {
			return err
		}
	}
	return types.PrintResult(c.PrevResult, c.CNIVersion)
}

// giveLocalPorts has a pod choose its source ports among these; nil for any.
func (c *config) giveLocalPorts(request cni.Request, ports *cni.Ports) error {
	if ports == nil {
		return nil
	}
	setting, err := setLocalPorts(request.Netns, *ports)
	if err != nil {
		return types.NewError(types.ErrTryAgainLater, fmt.Sprintf("origin-node-cni: the pod %s cannot be given its source ports", request.Pod), err.Error())
	}
	if !ports.Shared {
		c.passLocalPorts(request.ContainerID, setting)
	}
	_ = setting.Close() // the write was seen to succeed
	return nil
}

// attach returns when a pod may start, with the source ports that it is to use; nil if any. What becomes of a pod that the node does not
// decide about is judged while there is still time to look at the kernel.
func (c *config) attach(request cni.Request) (*cni.Ports, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.wait())
	defer cancel()
	asking, stop := context.WithTimeout(ctx, c.wait()-min(lookTime, c.wait()/2))
	defer stop()
	client := cni.NewClient(c.Socket)
	var last *cni.Failure // what the node has said last
	for {
		decision, err := client.Attach(asking, request)
		if err == nil {
			return decision.LocalPorts(), nil
		}
		var no *cni.Failure
		said := errors.As(err, &no)
		if said && (no.Reason == cni.Invalid || no.Reason == cni.Forbidden) {
			return nil, err
		}
		if said {
			last = no
		}
		late := asking.Err() != nil
		silent := !said && (!late || last == nil) // a question that time has cut off is no silence
		if silent || late && (last.Reason == cni.WaitingFor || last.Reason == cni.NotWritten) {
			switch verdict, because := c.judge(ctx, request, last != nil); verdict {
			case starts:
				fmt.Fprintf(os.Stderr, "origin-node-cni: the pod %s starts although the node does not decide, for %s: %v\n", request.Pod, because, err)
				return nil, nil
			case fails:
				return nil, fmt.Errorf("%s, and the node does not decide: %w", because, err)
			}
		}
		if late {
			asking = ctx // it may say yes later
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("asking the node for %s: %w", c.wait(), err)
		case <-time.After(askAgain):
		}
	}
}

// verdict is what becomes of a pod while the node does not decide.
type verdict int

const (
	waits verdict = iota
	starts
	fails
)

// judge says what becomes of a pod that the node does not decide about; answered tells whether a node process has said
// so. It runs programs unless the pod's namespace has claims.
func (c *config) judge(ctx context.Context, request cni.Request, answered bool) (v verdict, because string) {
	switch c.Unanswered {
	case start:
		return starts, "the configuration says so"
	case refuse:
		return waits, ""
	}
	namespaces, err := attachments.ReadClaims(attachments.Claims(c.Socket))
	switch {
	case errors.Is(err, fs.ErrNotExist) && !answered:
		return starts, "no node process has ever run"
	case err != nil:
		return fails, err.Error()
	case namespaces[request.Pod.Namespace]:
		return waits, ""
	}
	if because := c.formerPod(request, namespaces); because != "" {
		return fails, because
	}
	switch ip, bound, err := boundInKernel(ctx, request.IPs); {
	case err != nil:
		return fails, fmt.Sprintf("it cannot be seen whether the kernel still has its address bound for another pod: %v", err)
	case bound:
		return fails, fmt.Sprintf("the kernel still has the address %s bound, for a pod that had it before", ip)
	}
	return starts, "no Service of its namespace has a claim"
}

// formerPod says which pod of a namespace with claims had an address of a request before, if no node process has said
// that nothing in the kernel is for it any more.
func (c *config) formerPod(request cni.Request, claims map[string]bool) string {
	for _, folder := range []string{attachments.Folder(c.Socket), attachments.Released(c.Socket)} {
		all, err := attachments.Peek(folder)
		if err != nil {
			fmt.Fprintf(os.Stderr, "origin-node-cni: some files about former pods cannot be read and do not count: %v\n", err)
		}
		for _, a := range all {
			if a.ContainerID == request.ContainerID || a.Cleared || !claims[a.Pod.Namespace] {
				continue
			}
			if i := slices.IndexFunc(a.IPs, func(ip netip.Addr) bool { return slices.Contains(request.IPs, ip) }); i >= 0 {
				return fmt.Sprintf("the address %s may still be bound for the pod %s, which had it before", a.IPs[i], a.Pod)
			}
		}
	}
	return ""
}

// del never fails: a runtime would try it again and again, and keep the pod's address.
func del(args *skel.CmdArgs) error {
	if args.IfName != cni.Interface {
		return nil
	}
	c, wrong := parse(args.StdinData) // of which the socket may be right all the same
	ctx, cancel := context.WithTimeout(context.Background(), delWait)
	defer cancel()
	failed := cni.NewClient(c.Socket).Detach(ctx, args.ContainerID, args.IfName)
	if failed == nil {
		return nil
	}
	var no *cni.Failure
	if err := errors.Join(wrong, c.leave(args, errors.As(failed, &no))); err != nil {
		fmt.Fprintf(os.Stderr, "origin-node-cni: the node was not told that the container %s has ended, and may not learn it: %v\n", args.ContainerID, errors.Join(failed, err))
	}
	return nil
}

// leave notes for the node's next process that a container has ended. There is nothing to note of one that the node was
// never told of; nor of one without a file whose namespace has no claims, unless a node process has answered: where none runs, nobody
// would ever take the notes.
func (c *config) leave(args *skel.CmdArgs, answered bool) error {
	a, err := attachments.Read(attachments.Folder(c.Socket), args.ContainerID)
	if err != nil {
		request, concerned, unreadable := c.requestOf(args)
		if !concerned {
			return errors.Join(ifExists(err), unreadable)
		}
		namespaces, unknown := attachments.ReadClaims(attachments.Claims(c.Socket))
		if !answered && !namespaces[request.Pod.Namespace] && ifExists(unknown) == nil {
			return nil
		}
		a = attachments.Attachment{ContainerID: request.ContainerID, IfName: request.IfName, Netns: request.Netns, Pod: request.Pod, IPs: request.IPs}
	}
	if a.Cleared {
		return nil
	}
	if a.Released.IsZero() {
		a.Released = time.Now()
	}
	return attachments.Leave(attachments.Released(c.Socket), a)
}

// ifExists returns err if it is about a file that exists.
func ifExists(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func check(args *skel.CmdArgs) error {
	c, err := parse(args.StdinData)
	if err != nil {
		return err
	}
	if podOf(args.Args).UID == "" {
		return nil // ADD has let it start; claims that its namespace has since change nothing
	}
	request, concerned, err := c.requestOf(args)
	if err != nil || !concerned {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.wait())
	defer cancel()
	client := cni.NewClient(c.Socket)
	soon, stop := context.WithTimeout(ctx, checkWait)
	defer stop()
	_, err = client.Check(soon, args.ContainerID)
	var no *cni.Failure
	patience := soon
	if err != nil && !c.stands(request.Pod, err) { // so the pod would be stopped
		patience = ctx
		if !unattached(err) { // else it would be the same answer
			if _, later := client.Check(ctx, args.ContainerID); later == nil || errors.As(later, &no) {
				err = later
			}
		}
	}
	if unattached(err) { // its file was lost, or ADD has let it start without the node
		decision, anew := client.Attach(patience, request)
		if anew == nil {
			return c.giveLocalPorts(request, decision.LocalPorts())
		}
		if !errors.As(anew, &no) || slices.Contains([]cni.Reason{cni.WaitingFor, cni.NotWritten, cni.Late}, no.Reason) {
			err = anew
		} else {
			err = fmt.Errorf("%w, and it is not attached anew: %w", err, anew) // the first one decides
		}
	}
	switch {
	case err == nil:
		return nil
	case c.stands(request.Pod, err):
		fmt.Fprintf(os.Stderr, "origin-node-cni: the pod %s stays as ADD has left it, although the node does not confirm its bindings: %v\n", request.Pod, err)
		return nil
	case unattached(err):
		return types.NewError(types.ErrUnknownContainer, "origin-node-cni: the node does not know the container", err.Error())
	default:
		return types.NewError(types.ErrTryAgainLater, "origin-node-cni: the node did not confirm the container's bindings", err.Error())
	}
}

// unattached tells whether the node has said that it does not know a container.
func unattached(err error) bool {
	var no *cni.Failure
	return errors.As(err, &no) && no.Reason == cni.NotAttached
}

// stands tells whether nothing is known that ADD did not know when it let a pod start, although the node does not confirm the pod's
// bindings. CRI-O checks each pod after ADD, and all of them when it starts; it stops those that fail.
func (c *config) stands(pod attachments.Pod, unconfirmed error) bool {
	var no *cni.Failure
	said := errors.As(unconfirmed, &no)
	switch {
	case c.Unanswered == refuse:
		return false
	case !said || no.Reason == cni.WaitingFor || no.Reason == cni.Late:
		return true // what is in the kernel stays there
	case no.Reason != cni.NotWritten && no.Reason != cni.NotAttached:
		return false
	case c.Unanswered == start:
		return true
	}
	namespaces, err := attachments.ReadClaims(attachments.Claims(c.Socket))
	unwritten := errors.Is(err, fs.ErrNotExist) && no.Reason == cni.NotAttached
	return unwritten || err == nil && !namespaces[pod.Namespace]
}

func collect(args *skel.CmdArgs) error {
	c, err := parse(args.StdinData)
	if err != nil {
		return err
	}
	if c.ValidAttachments == nil {
		var all map[string]json.RawMessage
		_ = json.Unmarshal(args.StdinData, &all) // parse could read it
		if all["cni.dev/valid-attachments"] != nil {
			return nil // nothing follows from null, which CRI-O gives
		}
		return types.NewError(types.ErrInvalidNetworkConfig, "origin-node-cni: cni.dev/valid-attachments is missing", "")
	}
	valid := []string{}
	for _, attachment := range c.ValidAttachments {
		if attachment.IfName == cni.Interface {
			valid = append(valid, attachment.ContainerID)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.wait())
	defer cancel()
	if err := cni.NewClient(c.Socket).Collect(ctx, valid); err != nil {
		return types.NewError(types.ErrTryAgainLater, "origin-node-cni: the node did not collect the ended containers", err.Error())
	}
	return nil
}

// status says that pods can start, unless none could.
func status(args *skel.CmdArgs) error {
	c, err := parse(args.StdinData)
	if err != nil || c.Unanswered != refuse {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), statusWait)
	defer cancel()
	if err := cni.NewClient(c.Socket).Ready(ctx); err != nil {
		return types.NewError(types.ErrPluginNotAvailable, "origin-node-cni: the node cannot bind pods now", err.Error())
	}
	return nil
}
