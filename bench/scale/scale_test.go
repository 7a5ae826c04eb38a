package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The processes of a curve are this program again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-serve" {
		main()
		return
	}
	os.Exit(m.Run())
}

func points(f func(float64) float64, sizes ...float64) (out []Point) {
	for _, n := range sizes {
		out = append(out, Point{n, f(n)})
	}
	return out
}

// The exponent of a power law is found, whatever its factor, from the two largest decades, with an error that is larger where the
// points are not on a line.
func TestFit(t *testing.T) {
	decades := []float64{1, 10, 100, 1000, 10_000}
	for _, exponent := range []float64{0, 0.5, 1, 2} {
		got := fit(points(func(n float64) float64 { return 7 * math.Pow(n, exponent) }, decades...))
		if math.Abs(got.Exponent-exponent) > 1e-9 || got.Error > 1e-9 || got.From != 100 || got.To != 10_000 || got.Points != 3 {
			t.Errorf("n^%v: %+v", exponent, got)
		}
	}
	constant := fit(points(func(n float64) float64 { return 1e6 + n }, decades...))
	if math.Abs(constant.Exponent) > 0.01 {
		t.Errorf("a constant cost: %+v", constant)
	}
	// ln y is 0, 1, 0 at three sizes a decade apart: the slope is 0, and the rest 2/3 over ln(10)^2 * 2.
	bent := fit([]Point{{1, 1}, {10, math.E}, {100, 1}})
	if want := math.Sqrt(2.0 / 3 / (2 * math.Ln10 * math.Ln10)); math.Abs(bent.Exponent) > 1e-9 || math.Abs(bent.Error-want) > 1e-9 {
		t.Errorf("bent: %+v, want an error of %v", bent, want)
	}
	for name, none := range map[string][]Point{"no points": nil, "one": {{1, 1}}, "one size": {{1, 1}, {1, 2}}, "not positive": {{1, 0}, {2, 0}, {3, 1}}} {
		if got := fit(none); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// n log n passes and a higher power does not, unless the points are too far from a line to say so.
func TestFitWorseThanNLogN(t *testing.T) {
	sizes := []float64{1000, 3000, 10_000, 30_000, 100_000}
	for _, tt := range []struct {
		name  string
		cost  func(float64) float64
		worse bool
	}{
		{"constant", func(float64) float64 { return 3 }, false},
		{"n", func(n float64) float64 { return n }, false},
		{"n log n", func(n float64) float64 { return n * math.Log(n) }, false},
		{"n^1.5", func(n float64) float64 { return math.Pow(n, 1.5) }, true},
		{"n^2", func(n float64) float64 { return n * n }, true},
		{"scattered", func(n float64) float64 { return n * (1 + 900*math.Abs(math.Sin(n))) }, false},
	} {
		if got := fit(points(tt.cost, sizes...)); got.worse() != tt.worse {
			t.Errorf("%s: worse is %t: %+v", tt.name, got.worse(), got)
		}
	}
}

func TestSteps(t *testing.T) {
	for _, tt := range []struct {
		first, last int
		want        []int
	}{{1, 50, []int{1, 3, 10, 30, 50}}, {10, 10, []int{10}}, {10, 1000, []int{10, 30, 100, 300, 1000}}} {
		if got := steps(tt.first, tt.last); !slices.Equal(got, tt.want) {
			t.Errorf("%d to %d: %v, want %v", tt.first, tt.last, got, tt.want)
		}
	}
}

// Every curve can be measured at its smallest sizes: each series has a value at each size, the tables name it, and the pictures
// are XML that has it in the legend.
func TestCurves(t *testing.T) {
	dir := t.TempDir()
	var out, log bytes.Buffer
	if err := command([]string{"-quick", "-json", "-svg", dir, "-lathe", ownProcess}, &out, &log); err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	var got struct{ Charts []*Chart }
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Charts) != len(curves) {
		t.Fatalf("%d charts of %d curves", len(got.Charts), len(curves))
	}
	tables := table(got.Charts)
	for i, c := range got.Charts {
		if c.Name != curves[i].name || c.Title == "" || c.Size == "" {
			t.Errorf("chart %d is %q of %q, sized in %q", i, c.Title, c.Name, c.Size)
		}
		picture, err := os.ReadFile(filepath.Join(dir, "scale-"+c.Name+".svg"))
		if err != nil {
			t.Fatal(err)
		}
		texts := textsOf(t, picture)
		ours := false
		for _, s := range c.Series {
			ours = ours || !s.Peer
			if len(s.Points) == 0 || !strings.Contains(tables, s.Name+" | "+s.Measure) {
				t.Errorf("%s: %s, %s has %d points, or no row", c.Name, s.Name, s.Measure, len(s.Points))
			}
			for _, p := range s.Points {
				if math.IsNaN(p.Value) || p.Value < 0 || p.Size <= 0 {
					t.Errorf("%s: %s, %s is %v at %v", c.Name, s.Name, s.Measure, p.Value, p.Size)
				}
			}
			if s.Panel != "" && s.Fit != nil && !slices.ContainsFunc(texts, func(x string) bool { return strings.HasPrefix(x, s.Name+": exponent ") }) {
				t.Errorf("%s: the picture has no legend for %s: %q", c.Name, s.Name, texts)
			}
		}
		if !ours {
			t.Errorf("%s measures nothing of Lathe", c.Name)
		}
	}
}

// A picture is well-formed whatever its names are, and a value that has no logarithm is left out.
func TestDraw(t *testing.T) {
	c := &Chart{Title: `a < b & "c"`, Size: "things", Series: []Series{
		{Panel: "left", Name: "<one>", Measure: "CPU µs", Points: []Point{{1, 0}, {10, 5}, {100, 50}}},
		{Panel: "right", Name: "flat", Measure: "bytes", Points: []Point{{1, 5}, {10, 5}}},
		{Panel: "nothing", Name: "zero", Measure: "bytes", Points: []Point{{1, 0}}},
		{Name: "not drawn", Measure: "bytes", Points: []Point{{1, 5}}},
	}}
	picture := draw(c)
	texts := textsOf(t, picture)
	for _, want := range []string{c.Title, "left, CPU µs", "right, bytes", "<one>", "flat", "things", "100"} {
		if !slices.Contains(texts, want) {
			t.Errorf("the picture does not say %q: %q", want, texts)
		}
	}
	if slices.Contains(texts, "not drawn") || bytes.Contains(picture, []byte("NaN")) || bytes.Contains(picture, []byte("Inf")) {
		t.Errorf("%s", picture)
	}
}

// textsOf returns the texts of an SVG picture.
func textsOf(t *testing.T, picture []byte) (texts []string) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(picture))
	inText := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, picture)
		}
		switch x := token.(type) {
		case xml.StartElement:
			inText = x.Name.Local == "text"
		case xml.CharData:
			if inText {
				texts = append(texts, string(x))
			}
		case xml.EndElement:
			inText = false
		}
	}
}

// An unknown flag is an error, and so is an unknown name of a process.
func TestCommandRefuses(t *testing.T) {
	for _, args := range [][]string{{"-nosuch"}, {"-serve", "nothing"}} {
		if err := command(args, io.Discard, io.Discard); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}

// The measurements of an MCP server use its tools: a list that is not complete and a call of a tool that is not there are errors.
func TestMCPMeasurements(t *testing.T) {
	s := &settings{dir: t.TempDir()}
	const n = 3
	for _, l := range s.mcpMeasurements() {
		op, stop, err := l.prepare(n)
		if err != nil {
			t.Fatalf("%s: %v", l.name, err)
		}
		for range 2 { // the definitions are pinned by the first start, and compared by the second
			if err := op(); err != nil {
				t.Errorf("%s: %v", l.name, err)
			}
		}
		stop()
	}
	server := newMCPServer(n)
	defer server.Close()
	if err := listWithSDK(server.URL, n+1); err == nil {
		t.Error("a tool is missing, and nothing fails")
	}
	path, err := s.mcpConfig(server.URL, nowhere)
	if err != nil {
		t.Fatal(err)
	}
	a, err := newApp(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := callMCPTool(a.Handler(), n-1); err != nil {
		t.Error(err)
	}
	if err := callMCPTool(a.Handler(), n); err == nil {
		t.Error("a tool that the server does not have is called")
	}
}
