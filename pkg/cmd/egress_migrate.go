package cmd

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/desk"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/kernel"
)

const egressMigrateLong = `Prints, for each Service that claims an external IP, a command that adds the annotation
network.openshift.io/egress-ip. With the annotation, the Service's pods keep their egress IP when Kubernetes
removes the field spec.externalIPs. It changes nothing itself: the output is a shell script to read and run.

Claims that it cannot decide are comments in the script, and the exit status is 3. Such a claim is refused
already, or it would be refused without external IPs, because no argument of the nodes allows an address that
the annotation alone names. In the second case, change egress-snat-allowed-cidrs or
egress-snat-namespace-cidrs before the external IPs are removed; --config=FILE tests a configuration that no
node has yet.

An external IP that a Service has but does not claim belongs to nobody once it is removed.

--check prints no commands, and covers all namespaces. It makes three plans of the whole cluster: as it is,
with the annotations, and with the annotations but without external IPs. It says whether each pod and Service
has the same egress IP in all three, byte for byte. The exit status is 1 if not.

An annotation changes nothing as long as the Service has the address as an external IP.`

const egressMigrateExample = `  # The commands for all namespaces, to read and run
  kubectl egress migrate -A > migrate.sh

  # Whether each pod of the cluster keeps its egress IP
  kubectl egress migrate --check`

// ExitUndecided is the exit status of 'kubectl egress migrate' if it leaves something to people.
const ExitUndecided = 3

var errUndecided = errors.New("some claims need your decision: see the comments in the output")

func newEgressMigrateCommand(o *egressOptions) *cobra.Command {
	var check bool
	c := plain("migrate", "Print the commands that keep egress IPs when Services lose their external IPs", "", "", func(c *cobra.Command) error {
		reader, err := o.desk.reader()
		if err != nil {
			return err
		}
		read, err := reader.Read(c.Context())
		if err != nil {
			return err
		}
		return o.migrate(c, read, check)
	})
	c.Flags().BoolVar(&check, "check", false, "Compare the plans before and after, and print no commands.")
	return c
}

func (o *egressOptions) migrate(c *cobra.Command, read desk.Read, check bool) error {
	migrations, err := desk.MigrationFrom(read.Config.Config, read.Objects)
	if err := errors.Join(warn(c.ErrOrStderr(), append(read.Doubts, textOf(err)...)), tellLeftOut(c.ErrOrStderr(), read.LeftOut)); err != nil {
		return err
	}
	var result error
	if check {
		result = checkMigration(c.OutOrStdout(), read, migrations)
	} else {
		result = printMigration(c.OutOrStdout(), migrations, o.desk.namespaceOf(false))
	}
	if result != nil && !errors.Is(result, errUndecided) {
		return result
	}
	return errors.Join(incomplete(read.LeftOut), result)
}

// textOf returns the lines of an error, if there is one.
func textOf(err error) []string {
	if err == nil {
		return nil
	}
	return []string{err.Error()}
}

func printMigration(out io.Writer, migrations []desk.Migration, namespace string) (undecided error) {
	var text bytes.Buffer
	for _, m := range migrations {
		if namespace != "" && m.Service.Namespace != namespace {
			continue
		}
		for _, because := range m.Undecided {
			undecided = errUndecided
			fmt.Fprintf(&text, "# %s: %s\n", m.Service, kernel.Printable(because))
		}
		if len(m.EgressIPs) > 0 && !m.Annotated {
			fmt.Fprintf(&text, "kubectl patch service -n %s %s --type=merge -p '{\"metadata\":{\"annotations\":{%q:%q}}}'\n", m.Service.Namespace, m.Service.Name, cluster.EgressIPAnnotation, m.Annotation())
		}
	}
	if text.Len() == 0 {
		where := "in any namespace"
		if namespace != "" {
			where = "in the namespace " + namespace
		}
		fmt.Fprintf(&text, "# no Service %s needs a command\n", where)
	}
	_, err := out.Write(text.Bytes())
	return cmp.Or(err, undecided)
}

// checkMigration compares what is to be expected with the annotations, and then without external IPs, with what is now.
func checkMigration(out io.Writer, read desk.Read, migrations []desk.Migration) error {
	before, err := desk.OutlookFor(read.Config.Config, read.Objects, nil, false)
	if err != nil {
		return err
	}
	for _, step := range []struct {
		name string
		bare bool
	}{{"with the annotations", false}, {"with the annotations and without external IPs", true}} {
		after, err := desk.OutlookFor(read.Config.Config, read.Objects, migrations, step.bare)
		if err != nil {
			return err
		}
		if err := compareOutlooks(before, after); err != nil {
			return fmt.Errorf("%s, something would change: %w; see 'kubectl egress migrate -A'", step.name, err)
		}
		if _, err := fmt.Fprintf(out, "%s: the bindings of the cluster are the same, byte for byte: %d of IPv4, %d of IPv6\n", step.name, len(after[0].Bindings), len(after[1].Bindings)); err != nil {
			return err
		}
	}
	return nil
}

// compareOutlooks returns the first thing that is given before and not after: a binding, or the claim of a Service that may have no pods.
func compareOutlooks(before, after []desk.Outlook) error {
	for i := range before {
		byName := func(a, b plan.Service) int { return cmp.Compare(a.String(), b.String()) }
		for _, service := range slices.SortedFunc(maps.Keys(before[i].Claims), byName) {
			claim := before[i].Claims[service]
			if later := after[i].Claims[service]; claim.Refused == "" && !claim.Equal(later) {
				return fmt.Errorf("the Service %s would no longer have the egress IPs %v", service, claim.EgressIPs)
			}
		}
		if !slices.Equal(before[i].Bindings, after[i].Bindings) {
			return firstDifference(before[i].Bindings, after[i].Bindings)
		}
	}
	return nil
}

func firstDifference(before, after []plan.Binding) error {
	if lost := kernel.Without(before, after); len(lost) > 0 {
		b := lost[0]
		return fmt.Errorf("pod %s would no longer leave from %s for %s by the Service %s", b.Pod, b.EgressIP, b.Protocol, b.Service)
	}
	return errors.New("more pods would have an egress IP")
}
