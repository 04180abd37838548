package poolnode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/openshift/origin-node/pkg/egress/pool"
)

// Drain has this node give its egress IPs to the other nodes of the pool, and take none, or not any more. What is
// remembered counts after a restart of the process as well. It is an error if this node has no part in the pool.
func (p *Part) Drain(now, remember bool) error {
	runner, _ := p.part()
	if runner == nil {
		return p.absence()
	}
	if err := p.setDrained(now, remember); err != nil {
		return err
	}
	p.tellDrain(runner)
	if now {
		p.logger.Info("Drain started: this node gives its egress IPs to other nodes, and takes none")
	} else {
		p.logger.Info("Drain ended: this node takes egress IPs again")
	}
	return nil
}

// setDrained notes whether this node is drained.
func (p *Part) setDrained(now, remember bool) error {
	p.draining.Lock()
	defer p.draining.Unlock()
	file := p.config.DrainFile
	switch {
	case now && remember:
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			return fmt.Errorf("note that this node is drained: %w", err)
		}
	case !now:
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("note that this node is not drained any more: %w", err)
		}
	}
	p.drained = now
	p.goingDown = p.goingDown && now // an operator who ends a drain means it
	return nil
}

// toldDrain is what the runner is to be told.
func (p *Part) toldDrain() pool.Drain {
	p.draining.Lock()
	defer p.draining.Unlock()
	return pool.Drain{Now: p.drained || p.goingDown}
}

// setGoingDown notes whether the system goes down. Whoever starts the runner tells it.
func (p *Part) setGoingDown(now bool) {
	p.draining.Lock()
	defer p.draining.Unlock()
	p.goingDown = now
}

// tellDrain tells the runner whether this node is drained. Another may change that meanwhile: then the newer is told as well, so that the last
// word is right.
func (p *Part) tellDrain(runner *pool.Runner) {
	told := p.toldDrain()
	for runner.Tell(told); p.toldDrain() != told; runner.Tell(told) {
		told = p.toldDrain()
	}
}

// remembersDrain tells whether an operator has drained this node, perhaps when an earlier process ran.
func (p *Part) remembersDrain() bool {
	_, err := os.Stat(p.config.DrainFile)
	return err == nil
}

// GiveAllAway gives this node's addresses to others because the system goes down. It returns when they have them, or ctx ends.
func (p *Part) GiveAllAway(ctx context.Context) {
	p.setGoingDown(true)
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	runner, starting := p.part()
	for ; starting && ctx.Err() == nil; runner, starting = p.part() {
		<-look.C
	}
	if runner == nil {
		return
	}
	p.logger.Info("The system shuts down: this node gives its egress IPs to other nodes")
	p.tellDrain(runner)
	for ; ctx.Err() == nil; <-look.C {
		if own := runner.Status().Members; len(own) > 0 && own[0].Draining && len(own[0].Held) == 0 && len(p.handingOver()) == 0 {
			return
		}
	}
	p.logger.Error(nil, "The system shuts down before other nodes have taken all egress IPs of this node; they take the rest when this node is gone")
}

// GoOn ends GiveAllAway: the system does not go down after all.
func (p *Part) GoOn() {
	p.setGoingDown(false)
	runner, _ := p.part()
	if runner == nil {
		return
	}
	p.logger.Info("The shutdown was cancelled: this node takes egress IPs again unless it is drained")
	p.tellDrain(runner)
}
