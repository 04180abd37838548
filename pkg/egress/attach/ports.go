package attach

import (
	"context"
	"fmt"
	"os"

	"github.com/openshift/origin-node/pkg/egress/attachments"
	"github.com/openshift/origin-node/pkg/egress/plan"
)

// assign has a pod that is about to run get source ports of its egress IPs, which it keeps for its life. The next sync writes them with its
// bindings.
func (a *Attacher) assign(ctx context.Context, id string) error {
	attachment, known := a.store.Get(id)
	if a.node.Assign == nil || !known || !attachment.Released.IsZero() {
		return nil
	}
	a.state.Judge()
	var bindings []plan.Binding
	for _, ip := range attachment.IPs {
		bindings = append(bindings, a.state.BindingsOf(ip)...)
	}
	ports, size, err := a.node.Assign(ctx, attachment, bindings)
	if err != nil || ports == nil {
		return err
	}
	return a.SetPorts(id, ports, size)
}

// SetPorts notes the source ports that a pod has. They hold in memory after an error, too.
func (a *Attacher) SetPorts(id string, ports []attachments.Ports, blockSize int) error {
	known, err := a.store.Change(id, func(attachment *attachments.Attachment) {
		attachment.Ports, attachment.BlockSize = ports, blockSize
	})
	if !known {
		return fmt.Errorf("the container %s has ended", id)
	}
	a.follow()
	return err
}

// TakeLocalPorts is part of [cni.Node].
func (a *Attacher) TakeLocalPorts(containerID string, file *os.File) error {
	if a.node.TakeLocalPorts == nil {
		return file.Close()
	}
	return a.node.TakeLocalPorts(containerID, file)
}

// SetWidened notes that a pod can use the source ports inside that it has besides its first ones.
func (a *Attacher) SetWidened(id string) error {
	_, err := a.store.Change(id, func(attachment *attachments.Attachment) { attachment.Widened = true })
	a.follow()
	return err
}

// SetRecorded notes that it is written down that a pod has its source ports no more.
func (a *Attacher) SetRecorded(id string) error {
	_, err := a.store.Change(id, func(attachment *attachments.Attachment) { attachment.Recorded = true })
	return err
}

// All returns the attachments of this node; none if the plugin is not answered.
func (a *Attacher) All() []attachments.Attachment {
	if a == nil {
		return nil
	}
	return a.store.All()
}

// ForgetPorts has no pod have source ports of its own any more.
func (a *Attacher) ForgetPorts() {
	for _, attachment := range a.All() {
		if attachment.Ports == nil {
			continue
		}
		if err := a.SetPorts(attachment.ContainerID, nil, 0); err != nil {
			a.logger.Error(err, "The source ports of a pod are not removed from its file", "pod", attachment.Pod)
		}
	}
}
