package admission

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// builder collects variables.
type builder []admissionv1.Variable

// add adds a variable. In the expression each word of the pairs is replaced with what follows it.
func (b *builder) add(name, expression string, pairs ...string) {
	lines := strings.Split(strings.TrimSpace(expression), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "\t\t")
	}
	*b = append(*b, admissionv1.Variable{Name: name, Expression: strings.NewReplacer(pairs...).Replace(strings.Join(lines, "\n"))})
}

// variables build on each other. The last, refusals, has the messages of what is refused.
func variables(config Config) []admissionv1.Variable {
	var b builder
	b.add("annotations", "object.metadata.?annotations.orValue({})")
	b.addAddresses(config)
	b.add("chosenText", "string(variables.annotations[?ANNOTATION].orValue('true'))", "ANNOTATION", quote(config.Annotation))
	b.add("chosen", "variables.chosenText in ['true', 'false'] ? [] : variables.chosenText.split(',').map(t, t.trim())")
	b.addWrong("chosen", config.Annotation, 1, "two", "a pod leaves from one", `use "true", "false", or one of the Service\'s addresses of each IP family, separated by commas`)
	b.add("isNamed", "ANNOTATION in variables.annotations", "ANNOTATION", quote(config.EgressIPAnnotation))
	b.add("namedText", "string(variables.annotations[?ANNOTATION].orValue(''))", "ANNOTATION", quote(config.EgressIPAnnotation))
	b.add("named", "variables.isNamed ? variables.namedText.split(',').map(t, t.trim()) : []")
	b.addWrong("named", config.EgressIPAnnotation, config.MostEgressIPs, config.TooMany, config.Beyond, "name IP addresses, separated by commas")
	b.addClaims(config)
	b.addPortBlock(config)
	b.addRefusals(config)
	return b
}

// addAddresses adds the addresses that a Service has, and those of which it claims the first. A load balancer's are awaited when a Service is
// created: an annotation may name one of them, which only the plan can judge then.
func (b *builder) addAddresses(config Config) {
	b.add("externalIPs", "object.spec.?clusterIP.orValue('') == 'None' ? [] : object.spec.?externalIPs.orValue([]).map(t, string(t))")
	balanced := "[]"
	if config.LoadBalancerIPs {
		balanced = `
		object.spec.?type.orValue('') != 'LoadBalancer' ? [] : object.?status.?loadBalancer.?ingress.orValue([])
		  .filter(i, i.?ip.orValue('') != '' && i.?ipMode.orValue('VIP') == 'VIP').map(i, string(i.ip))`
	}
	b.add("balanced", balanced)
	b.add("awaited", strconv.FormatBool(config.LoadBalancerIPs)+" && object.spec.?type.orValue('') == 'LoadBalancer' && size(object.?status.?loadBalancer.?ingress.orValue([])) == 0")
	b.add("candidates", "size(variables.externalIPs) > 0 ? variables.externalIPs : variables.balanced")
}

// addWrong adds what is wrong with an annotation's value, which may name so many addresses of an IP family; tooMany says what to call more, beyond why no more.
func (b *builder) addWrong(name, annotation string, most int, tooMany, beyond, advice string) {
	b.add(name+"Wrong", `
		variables.NAME.exists(t, !isIP(t)) ? 'annotation TEXT has the value '
		  + strings.quote(size(variables.NAMEText) > 100 ? variables.NAMEText.substring(0, 100) : variables.NAMEText) + '; ADVICE'
		: size(variables.NAME.filter(t, !t.contains(':'))) > MOST ? 'annotation TEXT names TOO MANY IPv4 addresses; BEYOND'
		: size(variables.NAME.filter(t, t.contains(':'))) > MOST ? 'annotation TEXT names TOO MANY IPv6 addresses; BEYOND' : ''`,
		"NAME", name, "TEXT", annotation, "ADVICE", advice, "MOST", strconv.Itoa(most), "TOO MANY", tooMany, "BEYOND", beyond)
}

// addClaims adds what a Service claims, IPv4 first. A claim's ip is empty if the annotation means none of the Service's addresses, and
// what is wrong with it in refused, unless that is empty.
func (b *builder) addClaims(config Config) {
	for _, family := range []string{"IPv4", "IPv6"} {
		is := map[string]string{"IPv4": "!t.contains(':')", "IPv6": "t.contains(':')"}[family]
		b.add("of"+family, "variables.candidates.filter(t, IS)", "IS", is)
		b.add("claimOf"+family, `
		size(variables.chosen) == 0 || variables.chosenWrong != ''
		  ? (size(variables.ofFAMILY) == 0 ? [] : [{'ip': string(variables.ofFAMILY[0]), 'annotated': '', 'refused': string(variables.chosenWrong)}])
		  : variables.chosen.filter(t, IS).map(t, variables.ofFAMILY.exists(o, isIP(o) && ip(o) == ip(t)) || variables.awaited && size(variables.externalIPs) == 0
		    ? {'ip': string(t), 'annotated': '', 'refused': ''}
		    : {'ip': size(variables.ofFAMILY) == 0 ? '' : string(variables.ofFAMILY[0]), 'annotated': '',
		       'refused': 'annotation TEXT names ' + string(ip(t)) + ', which is none of the Service\'s FAMILY addresses'})`,
			"FAMILY", family, "IS", is, "TEXT", config.Annotation)
	}
	b.add("namedIPs", "variables.named.filter(t, isIP(t) && !t.contains(':')) + variables.named.filter(t, isIP(t) && t.contains(':'))")
	b.add("claims", `
		variables.chosenText == 'false' ? []
		: !variables.isNamed ? variables.claimOfIPv4 + variables.claimOfIPv6
		: size(variables.namedIPs) == 0 ? [{'ip': '', 'annotated': '', 'refused': string(variables.namedWrong)}]
		: variables.namedIPs.map(t, {'ip': string(t),
		    'annotated': variables.awaited || (variables.externalIPs + variables.balanced).exists(o, isIP(o) && ip(o) == ip(t)) ? '' : 'true',
		    'refused': string(variables.namedWrong != '' ? variables.namedWrong : variables.chosenWrong)})`)
}

// addPortBlock adds what is wrong with the number of ports that a Service wants for its pods; nothing if it claims no egress IP.
func (b *builder) addPortBlock(config Config) {
	sizes := make([]string, len(config.PortBlocks))
	for i, size := range config.PortBlocks {
		sizes[i] = quote(strconv.Itoa(size))
	}
	b.add("portBlockText", "string(variables.annotations[?ANNOTATION].orValue('0'))", "ANNOTATION", quote(config.PortBlockAnnotation))
	b.add("portBlockWrong", `
		size(variables.claims) == 0 || variables.portBlockText in SIZES ? [] : ['InvalidEgressPortBlock: annotation ANNOTATION: '
		  + strings.quote(size(variables.portBlockText) > 100 ? variables.portBlockText.substring(0, 100) : variables.portBlockText) + ' WRONG']`,
		"ANNOTATION", config.PortBlockAnnotation, "SIZES", "["+strings.Join(sizes, ", ")+"]", "WRONG", config.NoPortBlock)
}

// branch says what is refused when.
type branch struct{ when, say string }

// addRefusals adds what is wrong with each claim, in the order of the plan's reasons.
func (b *builder) addRefusals(config Config) {
	b.add("home", "object.metadata.namespace")
	b.add("clusterCIDRs", list(config.ClusterCIDRs))
	b.add("allowedCIDRs", list(config.AllowedCIDRs))
	pinned, reserved := pins(config.NamespaceCIDRs)
	b.add("pins", pinned)
	b.add("reserved", list(reserved))
	b.add("ownCIDRs", "variables.home in variables.pins ? variables.pins[variables.home] : OTHERS", "OTHERS", list(config.NamespaceCIDRs[everyOther]))
	var judgement strings.Builder
	for _, branch := range slices.Concat(addressBranches(), permissionBranches(config), textBranches(config)) {
		judgement.WriteString(branch.when + "\n    ? " + branch.say + "\n  : ")
	}
	b.add("refusals", `
		(size(variables.claims) == 0 ? [] : variables.externalIPs).filter(t, !isIP(t)).map(t, 'InvalidAddress: external IP ' + strings.quote(t)
		  + ' is not an IP address as the API server prints it: without leading zeros, and IPv4 not in IPv6 form')
		+ variables.claims.filter(c, c.ip == '' || isIP(c.ip)).map(c,
		  JUDGEMENT'').filter(m, m != '') + variables.portBlockWrong`, "JUDGEMENT", judgement.String())
}

// in is a condition: a claim's address lies in a network of a list.
func in(list string) string { return list + ".exists(n, cidr(n).containsIP(c.ip))" }

// saying is a message about a claim's address.
func saying(reason, rest string) string {
	return "'" + reason + ": egress IP ' + string(ip(c.ip)) + ' " + rest
}

func addressBranches() []branch {
	return []branch{
		{"c.ip == ''", "'InvalidAnnotation: ' + c.refused"},
		{"!ip(c.ip).isGlobalUnicast() || cidr('240.0.0.0/4').containsIP(c.ip) || cidr('0.0.0.0/8').containsIP(c.ip)",
			saying("InvalidAddress", "is not a unicast address that packets can come from'")},
		{in("variables.clusterCIDRs"), saying("AddressInCluster",
			"lies in the cluster CIDR ' + variables.clusterCIDRs.filter(n, cidr(n).containsIP(c.ip))[0] + ', so it is a pod\\'s address'")},
	}
}

func permissionBranches(config Config) (branches []branch) {
	const (
		pins  = "proxyArguments.egress-snat-namespace-cidrs"
		named = "variables.home in variables.pins"
		owner = "(" + named + " ? variables.home : '*')"
		host  = "string(ip(c.ip)) + (c.ip.contains(':') ? '/128' : '/32')"
	)
	if config.AllowedCIDRs != nil {
		branches = append(branches, branch{"!" + in("variables.allowedCIDRs"),
			"'NotAllowed: proxyArguments.egress-snat-allowed-cidrs does not allow ' + string(ip(c.ip)) + ' as an egress IP'"})
	}
	branches = append(branches,
		branch{"!(" + named + ") && " + in("variables.reserved"), saying("NotAllowed",
			"lies in ' + variables.reserved.filter(n, cidr(n).containsIP(c.ip))[0]\n      + ', which "+pins+
				" reserves for other namespaces; use another address, or pin this namespace with ' + variables.home + '=' + "+host)},
		branch{"(" + named + " || size(variables.ownCIDRs) > 0) && !" + in("variables.ownCIDRs"), saying("NotAllowed",
			"lies in none of the networks that "+pins+" has for this namespace, as ' + "+owner+
				"\n      + '=CIDR; use an address in one of them, or add ' + "+owner+" + '=' + "+host)})
	if config.AllowedCIDRs == nil {
		branches = append(branches, branch{"c.annotated != '' && !" + in("variables.ownCIDRs"), saying("NotAllowed",
			"is named by the annotation only, and no argument of the nodes allows it: add its network to proxyArguments.egress-snat-allowed-cidrs (which then limits all egress IPs), or add '\n      + variables.home + '=CIDR to "+
				pins+" (which then limits the egress IPs of this namespace)'")})
	}
	return branches
}

func textBranches(config Config) []branch {
	branches := []branch{{"c.refused != ''", "'InvalidAnnotation: ' + c.refused"}}
	if config.AllProtocols {
		return branches
	}
	const wrong = "object.spec.?ports.orValue([]).filter(p, !(p.?protocol.orValue('TCP') in ['TCP', 'UDP', 'SCTP']))"
	return append(branches, branch{"size(" + wrong + ") > 0",
		"'InvalidProtocol: a port has the protocol ' + strings.quote(" + wrong + "[0].protocol) + '; expected TCP, UDP or SCTP'"})
}

// pins returns the networks of the namespaces that are named, as a map, and all of them.
func pins(networks map[string][]netip.Prefix) (pinned string, reserved []netip.Prefix) {
	var entries []string
	for _, namespace := range slices.Sorted(maps.Keys(networks)) {
		if namespace != everyOther {
			entries = append(entries, quote(namespace)+": "+list(networks[namespace]))
			reserved = append(reserved, networks[namespace]...)
		}
	}
	return "{" + strings.Join(entries, ", ") + "}", reserved
}

// list is a list of networks, the smallest first.
func list(networks []netip.Prefix) string {
	sorted := slices.SortedFunc(slices.Values(networks), func(a, b netip.Prefix) int {
		return cmp.Or(cmp.Compare(b.Bits(), a.Bits()), a.Addr().Compare(b.Addr()))
	})
	var texts []string
	for _, n := range slices.Compact(sorted) {
		texts = append(texts, quote(n.Masked().String()))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// quote is for names and networks: they have no characters that would need more.
func quote(text string) string { return "'" + text + "'" }
