package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/hack/cluster"
	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/hack/machine"
	process "github.com/openshift/origin-node/hack/node"
)

const (
	// untilKilled is the environment variable of a process of this test that is to be killed.
	untilKilled = "E2E_UNTIL_KILLED"
	// podsRun is what it says when it may be.
	podsRun = "pods run"
)

// TestRealNode_KilledTestLeavesNothing: kubelets change nothing of the machine while they run, and when the process of their test is
// killed everything is gone that they and their pods have made.
func TestRealNode_KilledTestLeavesNothing(t *testing.T) {
	belongsTo(t, usual)
	if os.Getenv(untilKilled) != "" {
		runUntilKilled(t)
	}
	cluster.RequireBinaries(t)
	machine.RequireKubelet(t)
	before, set := surroundings(t), sysctls(t)
	pid := killWhenPodsRun(t, func() {
		if diff := cmp.Diff(set, sysctls(t)); diff != "" {
			t.Errorf("kubelets have changed sysctls of the machine (-want +got):\n%s", diff)
		}
	})
	process.Eventually(t, soon, func() error {
		if diff := cmp.Diff(before, surroundings(t)); diff != "" {
			return fmt.Errorf("the machine is not as before (-want +got):\n%s", diff)
		}
		return nil
	})
	// What is left of the network goes with the next lab.
	lab.ForTest(t, lab.Config{})
	for _, pattern := range []string{"/run/netns/lab-%d-*", filepath.Join(os.TempDir(), "origin-node-lab-lab-%d-*")} {
		if left, err := filepath.Glob(fmt.Sprintf(pattern, pid)); err != nil || len(left) > 0 {
			t.Errorf("these are left: %v, %v", left, err)
		}
	}
}

// runUntilKilled runs nodes with pods, and does not return.
func runUntilKilled(t *testing.T) {
	t.Helper()
	w := newRealWorld(t, settings{backend: lab.NFT})
	w.claim("shop", w.lanIPs(100)...)
	w.deploy("shop", 2)
	w.rollsOut("shop")
	w.Log(podsRun)
	select {}
}

// killWhenPodsRun runs this test in a process of its own, and kills that when its pods run, after it has looked. It returns the process's
// ID.
func killWhenPodsRun(t *testing.T, look func()) int {
	t.Helper()
	file := lab.LogFile(t, "killed")
	log, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // the process has its own
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), untilKilled+"=1")
	cmd.Stdout, cmd.Stderr = log, log
	ended, err := lab.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	process.Eventually(t, soon, func() error {
		said, err := os.ReadFile(file)
		select {
		case <-ended:
			t.Fatalf("the process to be killed has ended, %v:\n%s", err, said)
		default:
		}
		if err == nil && !strings.Contains(string(said), podsRun) {
			err = errors.New("its pods do not run")
		}
		return err
	})
	look()
	_ = cmd.Process.Kill()
	<-ended
	return cmd.Process.Pid
}
