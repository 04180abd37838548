// Command picture draws lines as an SVG, to standard output, that is readable on white and on dark. A line of standard
// input is a point: the name of its line, x, and y, with tabs between them.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"image/color"
	"os"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// Colours with about the same contrast to white and to dark; the names are for people who change them.
var (
	grey    = color.RGBA{R: 0x7d, G: 0x85, B: 0x90, A: 0xff}
	colours = []color.Color{
		grey,
		color.RGBA{R: 0x2f, G: 0x81, B: 0xf7, A: 0xff}, // blue
		color.RGBA{R: 0x2d, G: 0xa4, B: 0x4e, A: 0xff}, // green
		color.RGBA{R: 0xbf, G: 0x7f, B: 0x00, A: 0xff}, // ochre
		color.RGBA{R: 0xe5, G: 0x53, B: 0x4b, A: 0xff}, // red
	}
)

func main() {
	if err := draw(); err != nil {
		fmt.Fprintf(os.Stderr, "picture: %v\n", err)
		os.Exit(1)
	}
}

func draw() error {
	names, lines, err := read()
	if err != nil {
		return err
	}
	p := frame()
	for i, name := range names {
		line, points, err := plotter.NewLinePoints(lines[name])
		if err != nil {
			return err
		}
		line.Color, line.Width = colours[i%len(colours)], vg.Points(1.75)
		points.Color, points.Radius = line.Color, vg.Points(2.25)
		if i == 0 {
			line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
			p.Add(line)
			p.Legend.Add(name, line)
			continue
		}
		p.Add(line, points)
		p.Legend.Add(name, line, points)
	}
	picture, err := p.WriterTo(16*vg.Centimeter, 9*vg.Centimeter, "svg")
	if err != nil {
		return err
	}
	var svg bytes.Buffer
	if _, err := picture.WriteTo(&svg); err != nil {
		return err
	}
	// Few machines have the font; its letters are as wide as Arial's.
	_, err = os.Stdout.Write(bytes.ReplaceAll(svg.Bytes(), []byte("Liberation Sans"), []byte("Liberation Sans,Arial,sans-serif")))
	return err
}

// read returns the lines by name, and the names in the order in which they come.
func read() (names []string, lines map[string]plotter.XYs, err error) {
	lines = map[string]plotter.XYs{}
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		fields := strings.Split(input.Text(), "\t")
		if len(fields) != 3 {
			return nil, nil, fmt.Errorf("%q is no point", input.Text())
		}
		var point plotter.XY
		if point.X, err = strconv.ParseFloat(fields[1], 64); err != nil {
			return nil, nil, err
		}
		if point.Y, err = strconv.ParseFloat(fields[2], 64); err != nil {
			return nil, nil, err
		}
		if lines[fields[0]] == nil {
			names = append(names, fields[0])
		}
		lines[fields[0]] = append(lines[fields[0]], point)
	}
	return names, lines, input.Err()
}

// frame is the picture without its lines.
func frame() *plot.Plot {
	plot.DefaultFont.Variant = "Sans"
	p := plot.New()
	p.BackgroundColor = nil
	p.X.Label.Text, p.Y.Label.Text = "bound pods on the node", "new flows ÷ single rule"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.ConstantTicks{{Value: 250, Label: "250"}, {Value: 1_000, Label: "1,000"}, {Value: 10_000, Label: "10,000"}, {Value: 100_000, Label: "100,000"}}
	p.Y.Min, p.Y.Max = 0, 1.05
	p.Y.Tick.Marker = plot.ConstantTicks{{Value: 0, Label: "0"}, {Value: 0.25, Label: "0.25"}, {Value: 0.5, Label: "0.5"}, {Value: 0.75, Label: "0.75"}, {Value: 1, Label: "1"}}
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color, axis.Label.TextStyle.Color, axis.Tick.Color, axis.Tick.Label.Color = grey, grey, grey, grey
	}
	p.Legend.TextStyle.Color = grey
	p.Legend.Left, p.Legend.YOffs, p.Legend.XOffs = true, vg.Points(40), vg.Points(12)
	return p
}
