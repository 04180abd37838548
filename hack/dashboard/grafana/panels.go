package main

// row is a heading with panels.
type row struct {
	title     string
	collapsed bool
	panels    []panel
}

// kind is what a panel looks like.
type kind int

const (
	graph  kind = iota // lines over time
	bars               // stacked, over time
	number             // one value, now
	list               // a table of labels and values, now
)

// panel is one. Its description is made of those of its metrics.
type panel struct {
	title string
	kind  kind
	// unit is Grafana's name of it.
	unit string
	// warn and bad are the values from which on it is orange and red; 0 for never.
	warn, bad float64
	// note is what the metrics' own descriptions do not say.
	note string
	// value is how a list calls its values.
	value   string
	queries []query
}

// query asks for metrics of all nodes: those that the reader has selected are added. The legend must have all labels that
// tell the lines apart.
type query struct{ expr, legend string }

// plain is the unit of plain numbers.
const plain = "short"

// rows are the dashboard. All nodes know the same Services: what each of them says of the cluster is the same, and max
// joins it. What nodes say of themselves is summed.
var rows = []row{
	{title: "At a glance", panels: []panel{
		{title: "Nodes", kind: number, unit: plain, note: "Nodes that export metrics of egress SNAT.", queries: []query{
			{expr: `count(egress_snat_sync_period_seconds)`},
		}},
		{title: "Claims", kind: number, unit: plain, note: "A Service with egress IPs of both IP families counts twice.", queries: []query{
			{expr: `sum(max by (ip_family) (egress_snat_claims))`},
		}},
		{title: "Refusals", kind: number, unit: plain, warn: 1, queries: []query{
			{expr: `sum(max by (ip_family, reason) (egress_snat_refusals))`},
		}},
		{title: "Lost egress IPs", kind: number, unit: plain, bad: 1, note: "The most that any node misses.", queries: []query{
			{expr: `max(sum by (instance) (egress_snat_addresses{state="lost"}))`},
		}},
		{title: "Oldest look at the rules", kind: number, unit: "suffix: sync periods", warn: 1.5, bad: 4, note: "Each node compares its rules with the plan twice in a sync period.", queries: []query{
			{expr: `max((time() - egress_snat_last_sync_success_timestamp_seconds) / ignoring (ip_family) group_left () egress_snat_sync_period_seconds)`},
		}},
		{title: "Ports of the busiest egress IP", kind: number, unit: "percentunit", warn: 0.5, bad: 0.75, queries: []query{
			{expr: `max(egress_snat_port_usage_ratio)`},
		}},
		{title: "Alerts", kind: list, unit: plain, value: "Alerts", note: "Alerts of images/node/alerts.yaml that fire or are about to.", queries: []query{
			{expr: `count by (alertname, alertstate, severity) (ALERTS{alertname=~"Egress.+"})`},
		}},
		{title: "Lost egress IPs, since when", kind: list, unit: "dateTimeFromNow", value: "Since", note: "As the node knows that missed it last.", queries: []query{
			{expr: `max by (egress_ip, holder) (egress_snat_lost_address_timestamp_seconds) * 1000`},
		}},
	}},
	{title: "Identities", panels: []panel{
		{title: "Bindings", unit: plain, note: "A pod that leaves from another node than its own is bound on both.", queries: []query{
			{`sum by (instance) (egress_snat_bindings)`, "{{instance}}"},
		}},
		{title: "Claims by IP family", unit: plain, queries: []query{
			{`max by (ip_family) (egress_snat_claims)`, "{{ip_family}}"},
		}},
		{title: "Rules", unit: plain, queries: []query{
			{`sum by (instance) (egress_snat_rules)`, "{{instance}}"},
		}},
		{title: "Flows", unit: plain, queries: []query{
			{`sum by (egress_ip) (egress_snat_tracked_flows)`, "{{egress_ip}}"},
		}},
		{title: "Ports in use", unit: "percentunit", warn: 0.75, bad: 0.95, note: "The node counts on which most are in use.", queries: []query{
			{`max by (egress_ip) (egress_snat_port_usage_ratio)`, "{{egress_ip}}"},
		}},
		{title: "Blocks of source ports", kind: bars, unit: plain, note: "Of all egress IPs of which a node has blocks, or pods that share; free as the node knows that knows most.", queries: []query{
			{`sum by (state) (egress_snat_port_blocks{state=~"used|spare|quiet"})`, "{{state}}"},
			{`sum by (state) (max by (egress_ip, state) (egress_snat_port_blocks{state="free"}))`, "{{state}}"},
		}},
		{title: "Pods that share source ports", kind: graph, unit: plain, warn: 1, queries: []query{
			{`sum by (egress_ip) (egress_snat_port_sharing_pods)`, "{{egress_ip}}"},
		}},
		{title: "Source ports of the fullest pod", unit: "percentunit", warn: 0.75, bad: 0.95, note: "Towards its busiest destination.", queries: []query{
			{`max by (egress_ip) (egress_snat_port_block_usage_ratio)`, "{{egress_ip}}"},
		}},
		{title: "Pods with a second block", kind: graph, unit: plain, queries: []query{
			{`sum by (egress_ip) (egress_snat_port_second_blocks)`, "{{egress_ip}}"},
		}},
		{title: "Source ports not in order", kind: bars, unit: plain, warn: 1, queries: []query{
			{`max by (ip_family) (egress_snat_port_block_clashes)`, "clashes, {{ip_family}}"},
			{`sum by (instance) (increase(egress_snat_port_records_failed_total[$__rate_interval]))`, "{{instance}}, not written down"},
		}},
		{title: "Flows ended for a wrong source address", kind: bars, unit: plain, queries: []query{
			{`sum by (instance) (increase(egress_snat_conntrack_deletions_total[$__rate_interval]))`, "{{instance}}"},
			{`sum by (instance) (increase(egress_snat_conntrack_unbarred_total[$__rate_interval])) > 0`, "{{instance}}, not barred"},
		}},
	}},
	{title: "Refusals", panels: []panel{
		{title: "Refusals by reason", kind: bars, unit: plain, note: "On the node that has most. openshift egress refused says of what.", queries: []query{
			{`max by (ip_family, reason) (egress_snat_refusals) > 0`, "{{ip_family}} {{reason}}"},
		}},
		{title: "Ignored addresses of Nodes", kind: bars, unit: plain, note: "A Node tells addresses that are not its own. openshift egress verify says which.", queries: []query{
			{`max by (ip_family) (egress_snat_ignored_node_addresses)`, "{{ip_family}}"},
		}},
		{title: "Nodes that wait for objects", unit: plain, note: "They write no rules.", queries: []query{
			{`sum by (kind) (egress_snat_waiting_for_objects) > 0`, "{{kind}}"},
		}},
		{title: "Failed syncs", kind: bars, unit: plain, queries: []query{
			{`sum by (instance, ip_family) (increase(egress_snat_sync_failures_total[$__rate_interval]))`, "{{instance}} {{ip_family}}"},
		}},
	}},
	{title: "Holders and moves", panels: []panel{
		{title: "Egress IPs that nodes hold", unit: plain, queries: []query{
			{`sum by (instance) (egress_snat_addresses{state="local"})`, "{{instance}}"},
		}},
		{title: "Egress IPs without a holder", unit: plain, note: "On the node that knows of most. The pods of an unclaimed one use it where they run; those of a lost one elsewhere reach nothing outside.", queries: []query{
			{`max by (state) (sum by (instance, state) (egress_snat_addresses{state=~"lost|unclaimed"}))`, "{{state}}"},
			{`max(egress_snat_pool_unheld_addresses)`, "of the pool, unheld"},
		}},
		{title: "Egress IPs on several nodes", unit: plain, bad: 2, queries: []query{
			{`max by (egress_ip) (egress_snat_address_holders)`, "{{egress_ip}}"},
		}},
		{title: "Moves", kind: bars, unit: plain, queries: []query{
			{`sum by (reason) (increase(egress_snat_pool_moves_total[$__rate_interval])) > 0`, "{{reason}}"},
		}},
		{title: "Time to take an egress IP", unit: "s", queries: []query{
			{`histogram_quantile(0.5, sum by (le) (rate(egress_snat_pool_take_duration_seconds_bucket[$__rate_interval])))`, "median"},
			{`histogram_quantile(0.99, sum by (le) (rate(egress_snat_pool_take_duration_seconds_bucket[$__rate_interval])))`, "99 %"},
		}},
		{title: "Pool", unit: plain, note: "Live are those that the node sees that sees fewest, dead those that the node sees that sees most.", queries: []query{
			{`min(egress_snat_pool_members{state="live"})`, "live"},
			{`max(egress_snat_pool_members{state="dead"})`, "dead"},
			{`sum(egress_snat_pool_majority)`, "see a majority"},
		}},
	}},
	{title: "Steering", panels: []panel{
		{title: "Steered flows", unit: plain, queries: []query{
			{`sum by (instance, direction) (egress_snat_steered_flows)`, "{{instance}} {{direction}}"},
		}},
		{title: "Packets on the fast path", unit: "pps", queries: []query{
			{`sum by (instance, direction) (rate(egress_snat_fast_path_packets_total[$__rate_interval]))`, "{{instance}} {{direction}}"},
		}},
		{title: "Throughput of the fast path", unit: "Bps", queries: []query{
			{`sum by (instance, direction) (rate(egress_snat_fast_path_bytes_total[$__rate_interval]))`, "{{instance}} {{direction}}"},
		}},
		{title: "Pods on the fast path", unit: plain, queries: []query{
			{`sum by (instance) (egress_snat_fast_path_pods)`, "{{instance}}"},
		}},
		{title: "Packets dropped by the guard", unit: "pps", queries: []query{
			{`sum by (reason) (rate(egress_snat_dropped_packets_total[$__rate_interval]))`, "{{reason}}"},
		}},
		{title: "Announcements", unit: "pps", queries: []query{
			{`sum by (result) (rate(egress_snat_announcements_total[$__rate_interval]))`, "{{result}}"},
		}},
		{title: "Nodes that do not check sources as they should", unit: plain, queries: []query{
			{`sum by (reason) (egress_snat_port_security_fault)`, "{{reason}}"},
		}},
		{title: "Bound pods behind unknown interfaces", unit: plain, queries: []query{
			{`sum by (ip_family) (egress_snat_port_security_unchecked_pods)`, "{{ip_family}}"},
		}},
		{title: "Source NAT of others before egress SNAT", unit: plain, queries: []query{
			{`sum by (ip_family) (egress_snat_earlier_nat_chains)`, "{{ip_family}}"},
		}},
		{title: "Nodes with a fault of steering", unit: plain, queries: []query{
			{`sum by (reason) (egress_snat_steering_fault)`, "{{reason}}"},
		}},
	}},
	{title: "Latency", panels: []panel{
		{title: "From a change to the kernel", unit: "s", queries: []query{
			{`histogram_quantile(0.5, sum by (le) (rate(egress_snat_network_programming_duration_seconds_bucket[$__rate_interval])))`, "median"},
			{`histogram_quantile(0.99, sum by (le) (rate(egress_snat_network_programming_duration_seconds_bucket[$__rate_interval])))`, "99 %"},
		}},
		{title: "Sync, 99 %", unit: "s", queries: []query{
			{`histogram_quantile(0.99, sum by (ip_family, result, le) (rate(egress_snat_sync_duration_seconds_bucket[$__rate_interval])))`, "{{ip_family}} {{result}}"},
		}},
		{title: "Time since the last look at the rules", unit: "s", queries: []query{
			{`max by (instance) (time() - egress_snat_last_sync_success_timestamp_seconds)`, "{{instance}}"},
		}},
		{title: "CNI ADD and DEL", unit: "s", queries: []query{
			{`histogram_quantile(0.5, sum by (request, le) (rate(egress_snat_cni_duration_seconds_bucket[$__rate_interval])))`, "{{request}}, median"},
			{`histogram_quantile(0.99, sum by (request, le) (rate(egress_snat_cni_duration_seconds_bucket[$__rate_interval])))`, "{{request}}, 99 %"},
		}},
		{title: "Answers to the CNI plugin", unit: "reqps", queries: []query{
			{`sum by (request, result) (rate(egress_snat_cni_duration_seconds_count[$__rate_interval]))`, "{{request}} {{result}}"},
		}},
		{title: "Requests of the CNI plugin that wait", unit: plain, queries: []query{
			{`sum by (request) (egress_snat_cni_waiting)`, "{{request}}"},
		}},
	}},
	{title: "CNI plugin", collapsed: true, panels: []panel{
		{title: "Nodes with a fault of the plugin", unit: plain, queries: []query{
			{`sum by (reason) (egress_snat_cni_plugin_fault)`, "{{reason}}"},
		}},
		{title: "Pods that no EndpointSlice names", unit: plain, queries: []query{
			{`sum by (instance) (egress_snat_cni_unconfirmed_pods)`, "{{instance}}"},
		}},
		{title: "Writes of the list of plugins", kind: bars, unit: plain, queries: []query{
			{`sum by (instance) (increase(egress_snat_cni_list_writes_total[$__rate_interval]))`, "{{instance}}"},
		}},
	}},
	{title: "Journal of source ports", collapsed: true, panels: []panel{
		{title: "Nodes that cannot write it", unit: plain, queries: []query{
			{`sum by (instance) (egress_snat_journal_failing)`, "{{instance}}"},
		}},
		{title: "Lines that wait", unit: plain, queries: []query{
			{`sum by (instance) (egress_snat_journal_waiting_lines)`, "{{instance}}"},
		}},
		{title: "Lines", kind: bars, unit: plain, queries: []query{
			{`sum by (event) (increase(egress_snat_journal_lines_total[$__rate_interval]))`, "{{event}}"},
			{`sum by (instance) (increase(egress_snat_journal_lost_lines_total[$__rate_interval]))`, "given up by {{instance}}"},
		}},
		{title: "Write until it is on the disk", unit: "s", queries: []query{
			{`histogram_quantile(0.5, sum by (le) (rate(egress_snat_journal_sync_duration_seconds_bucket[$__rate_interval])))`, "median"},
			{`histogram_quantile(0.99, sum by (instance, le) (rate(egress_snat_journal_sync_duration_seconds_bucket[$__rate_interval])))`, "{{instance}}, 99 %"},
		}},
		{title: "File that is written", unit: "bytes", queries: []query{
			{`sum by (instance) (egress_snat_journal_file_bytes)`, "{{instance}}"},
		}},
	}},
	{title: "Kubelets behind a tunnel", collapsed: true, panels: []panel{
		{title: "Addresses of nodes in the rules", unit: plain, queries: []query{
			{`sum by (instance, ip_family) (tunnel_node_addresses)`, "{{instance}} {{ip_family}}"},
		}},
		{title: "Redirected ports", unit: plain, queries: []query{
			{`max by (ip_family, address) (tunnel_ports)`, "{{ip_family}} {{address}}"},
		}},
		{title: "Problems", kind: bars, unit: plain, queries: []query{
			{`max by (reason) (tunnel_problems) > 0`, "{{reason}}"},
		}},
		{title: "Sync of the tunnel, 99 %", unit: "s", queries: []query{
			{`histogram_quantile(0.99, sum by (ip_family, result, le) (rate(tunnel_sync_duration_seconds_bucket[$__rate_interval])))`, "{{ip_family}} {{result}}"},
		}},
		{title: "Last successful sync of the tunnel", unit: "s", queries: []query{
			{`max by (instance) (time() - tunnel_last_sync_success_timestamp_seconds)`, "{{instance}}"},
		}},
		{title: "Connections ended that went the wrong way", kind: bars, unit: plain, queries: []query{
			{`sum by (instance) (increase(tunnel_conntrack_deletions_total[$__rate_interval]))`, "{{instance}}"},
		}},
	}},
}
