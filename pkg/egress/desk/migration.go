package desk

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/openshift/origin-node/pkg/egress/cluster"
	"github.com/openshift/origin-node/pkg/egress/placement"
	"github.com/openshift/origin-node/pkg/egress/plan"
	"github.com/openshift/origin-node/pkg/kernel"
)

// Migration is what keeps the egress IPs of a Service's pods when the field spec.externalIPs is gone.
type Migration struct {
	Service plan.Service
	// EgressIPs are what EgressIPAnnotation has to name, IPv4 first: all that the Service claims; empty if it is not decided.
	EgressIPs []netip.Addr
	// Annotated: the Service has the annotation.
	Annotated bool
	// Undecided says for people what this program cannot decide.
	Undecided []string
}

// Annotation returns the value of EgressIPAnnotation.
func (m Migration) Annotation() string { return kernel.Join(m.EgressIPs, ",") }

// MigrationFrom returns a Migration for each Service with external IPs that claims something by the objects, sorted by Service. What of
// the objects cannot be read is in err.
func MigrationFrom(config cluster.Config, objects cluster.Objects) ([]Migration, error) {
	now, err := OutlookFor(config, objects, nil, false)
	var migrations []Migration
	for _, svc := range objects.Services {
		if len(svc.Spec.ExternalIPs) == 0 {
			continue
		}
		m := Migration{Service: cluster.PlanName(cluster.NameOf(svc))}
		_, m.Annotated = svc.Annotations[cluster.EgressIPAnnotation]
		if m.decide(now); len(m.EgressIPs)+len(m.Undecided) > 0 {
			migrations = append(migrations, m)
		}
	}
	slices.SortFunc(migrations, func(a, b Migration) int {
		return cmp.Or(cmp.Compare(a.Service.Namespace, b.Service.Namespace), cmp.Compare(a.Service.Name, b.Service.Name))
	})
	later, laterErr := OutlookFor(config, objects, migrations, true)
	for i := range migrations {
		migrations[i].foresee(now, later)
	}
	return migrations, errors.Join(err, laterErr)
}

// decide names all that the Service claims, also what is refused: that may be granted later. It is left to people if nothing is granted,
// or if an address cannot be read, for a family that the annotation does not name has no claim.
func (m *Migration) decide(now []Outlook) {
	var ips []netip.Addr
	granted, readable := false, true
	for _, o := range now {
		claim, claims := o.Claims[m.Service]
		if !claims {
			continue
		}
		granted, readable = granted || claim.Refused == "", readable && !slices.ContainsFunc(claim.EgressIPs, func(ip netip.Addr) bool { return !ip.IsValid() })
		ips = append(ips, claim.EgressIPs...)
		if claim.Refused != "" {
			m.Undecided = append(m.Undecided, "its claim is refused as it is: "+claim.Refused)
		}
	}
	if granted && readable {
		m.EgressIPs = ips
	}
}

// foresee notes what is granted now and would be refused without external IPs: an address that the annotation alone names needs a permission.
func (m *Migration) foresee(now, later []Outlook) {
	for i := range now {
		before, claims := now[i].Claims[m.Service]
		if after := later[i].Claims[m.Service]; claims && before.Refused == "" && after.Refused != "" {
			m.Undecided = append(m.Undecided, "without external IPs its claim would be refused: "+after.Refused)
		}
	}
}

// Outlook is what the cluster's plan of an IP family gives.
type Outlook struct {
	Bindings []plan.Binding
	Claims   map[plan.Service]Outcome
}

// Outcome is what becomes of a Service's claim. Refused is why the claim on one of its egress IPs is refused; empty if none is.
type Outcome struct {
	EgressIPs []netip.Addr
	Refused   string
}

// Equal tells whether o and other are the same.
func (o Outcome) Equal(other Outcome) bool {
	return slices.Equal(o.EgressIPs, other.EgressIPs) && o.Refused == other.Refused
}

// OutlookFor returns what is to be expected of these objects with the annotations of migrations, and if bare without any external IPs: of
// IPv4, then of IPv6.
func OutlookFor(config cluster.Config, objects cluster.Objects, migrations []Migration, bare bool) ([]Outlook, error) {
	config.NodeName, config.Scope = "", placement.Node
	annotations := map[plan.Service]string{}
	for _, m := range migrations {
		if len(m.EgressIPs) > 0 {
			annotations[m.Service] = m.Annotation()
		}
	}
	changed := make([]*v1.Service, len(objects.Services))
	for i, svc := range objects.Services {
		changed[i] = migrated(svc, annotations[cluster.PlanName(cluster.NameOf(svc))], bare)
	}
	objects.Services = changed
	s, _, err := cluster.StateFor(config, objects)
	var outlooks []Outlook
	for _, family := range cluster.Families {
		in, _ := s.Input(family)
		p := plan.Build(in)
		o := Outlook{Bindings: p.Bindings, Claims: map[plan.Service]Outcome{}}
		refused := refusedClaims(p)
		for _, claim := range in.Claims {
			o.Claims[claim.Service] = Outcome{claim.EgressIPs(), refused[claim.Service]}
		}
		outlooks = append(outlooks, o)
	}
	return outlooks, err
}

// refusedClaims returns why claims are refused as a whole, on one egress IP of several at least.
func refusedClaims(p plan.Plan) map[plan.Service]string {
	refused := map[plan.Service]string{}
	for _, r := range p.Refusals {
		if !r.Pod.IsValid() {
			refused[r.Service] = fmt.Sprintf("%s: %s", r.Reason, r.Message)
		}
	}
	return refused
}

func migrated(svc *v1.Service, annotation string, bare bool) *v1.Service {
	if annotation == "" && !bare {
		return svc
	}
	svc = svc.DeepCopy()
	if annotation != "" {
		if svc.Annotations == nil {
			svc.Annotations = map[string]string{}
		}
		svc.Annotations[cluster.EgressIPAnnotation] = annotation
	}
	if bare {
		svc.Spec.ExternalIPs = nil
	}
	return svc
}
