package main

import (
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// source is the data source that the dashboard's variable selects.
var source = common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}

// draw returns the dashboard with these rows.
func (c catalog) draw(rows []row) (dashboard.Dashboard, error) {
	board := dashboard.NewDashboardBuilder("origin-node egress").
		Uid("origin-node-egress").
		Description("Which addresses pods leave from, what is refused, which nodes hold the egress IPs, and how fast nodes follow. Generated; change hack/dashboard/grafana/panels.go of origin-node.").
		Tags([]string{"origin-node", "egress", "kubernetes"}).
		Time("now-3h", "now").
		Refresh("30s").
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus")).
		WithVariable(instances())
	id := uint32(0)
	for _, r := range rows {
		id++
		heading := dashboard.NewRowBuilder(r.title).Id(id)
		add := func(p finished) { heading.WithPanel(p) }
		if !r.collapsed {
			board.WithRow(heading)
			add = func(p finished) { board.WithPanel(p) }
		}
		for _, p := range r.panels {
			id++
			drawn, err := c.drawPanel(id, p)
			if err != nil {
				return dashboard.Dashboard{}, fmt.Errorf("panel %q: %w", p.title, err)
			}
			add(finished(drawn))
		}
		if r.collapsed {
			board.WithRow(heading)
		}
	}
	return board.Build()
}

// finished is a panel that is built.
type finished dashboard.Panel

// Build is that of [cog.Builder].
func (f finished) Build() (dashboard.Panel, error) { return dashboard.Panel(f), nil }

// instances is the variable that selects nodes. All of them is no list of their names: what has none, as some alerts have,
// is to be shown, too.
func instances() *dashboard.QueryVariableBuilder {
	all := func(text string) dashboard.StringOrArrayOfString {
		return dashboard.StringOrArrayOfString{ArrayOfString: []string{text}}
	}
	return dashboard.NewQueryVariableBuilder("instance").Label("Node").
		Datasource(source).
		Query(dashboard.StringOrMap{String: cog.ToPtr("label_values(egress_snat_sync_period_seconds, instance)")}).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
		Sort(dashboard.VariableSortNaturalAsc).
		Multi(true).IncludeAll(true).AllValue(".*").
		Current(dashboard.VariableOption{Selected: cog.ToPtr(true), Text: all("All"), Value: all("$__all")})
}

func (c catalog) drawPanel(id uint32, p panel) (dashboard.Panel, error) {
	drawn, err := p.bare()
	if err != nil {
		return drawn, err
	}
	description, err := c.describe(p)
	if err != nil {
		return drawn, err
	}
	size := sizes[p.kind]
	drawn.Id, drawn.Title, drawn.Description = &id, &p.title, &description
	drawn.Datasource, drawn.GridPos = &source, &size
	for i, q := range p.queries {
		expr, err := ofInstances(q.expr)
		if err != nil {
			return drawn, err
		}
		ask := prometheus.NewDataqueryBuilder().RefId(string(rune('A' + i))).Datasource(source).EditorMode(prometheus.QueryEditorModeCode).
			Expr(expr).LegendFormat(q.legend).Range()
		if p.kind == number || p.kind == list {
			ask.Instant()
		}
		if p.kind == list {
			ask.Format(prometheus.PromQueryFormatTable)
		}
		asked, err := ask.Build()
		if err != nil {
			return drawn, err
		}
		drawn.Targets = append(drawn.Targets, asked)
	}
	return drawn, nil
}

var sizes = map[kind]dashboard.GridPos{
	number: {W: 4, H: 4}, graph: {W: 8, H: 8}, bars: {W: 8, H: 8}, list: {W: 12, H: 6},
}

// describe returns what people read about a panel: its note, and what its metrics mean.
func (c catalog) describe(p panel) (string, error) {
	metrics, err := c.metricsOf(p.queries)
	if err != nil {
		return "", err
	}
	var paragraphs []string
	if p.note != "" {
		paragraphs = append(paragraphs, p.note)
	}
	for _, m := range metrics {
		if m.Help != "" {
			paragraphs = append(paragraphs, fmt.Sprintf("`%s`: %s", m.Name, m.Help))
		}
	}
	return strings.Join(paragraphs, "\n\n"), nil
}

// none is shown where there is no data: most panels have some only when something happens.
const none = "none"

// bare is the panel without what all kinds have in common.
func (p panel) bare() (dashboard.Panel, error) {
	switch p.kind {
	case number:
		return stat.NewPanelBuilder().Unit(p.unit).Thresholds(p.thresholds()).
			GraphMode(common.BigValueGraphModeNone).Orientation(common.VizOrientationAuto).NoValue(none).
			ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})).Build()
	case list:
		return table.NewPanelBuilder().Unit(p.unit).NoValue(none).
			WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
				"excludeByName": map[string]bool{"Time": true, "__name__": true, "job": true}, "renameByName": map[string]string{"Value": p.value},
			}}).Build()
	}
	builder := timeseries.NewPanelBuilder().Unit(p.unit).Min(0).Thresholds(p.thresholds()).NoValue(none).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending)).
		ShowPoints(common.VisibilityModeNever).FillOpacity(10)
	if p.kind == bars {
		builder.DrawStyle(common.GraphDrawStyleBars).FillOpacity(80).Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal))
	}
	if p.bad > 0 {
		builder.ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))
	}
	return builder.Build()
}

// thresholds are the values from which on a panel is orange and red.
func (p panel) thresholds() *dashboard.ThresholdsConfigBuilder {
	steps := []dashboard.Threshold{{Color: "green"}} // from anywhere on
	if p.warn > 0 {
		steps = append(steps, dashboard.Threshold{Value: &p.warn, Color: "orange"})
	}
	if p.bad > 0 {
		steps = append(steps, dashboard.Threshold{Value: &p.bad, Color: "red"})
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)
}
