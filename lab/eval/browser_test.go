package eval

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
)

func findBrowser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no browser: install chromium to look at the report")
	return ""
}

// plainReport is n runs of four models at six scenarios, of which each model passes others.
func plainReport(n int) *Report {
	rep := &Report{Suite: "state"}
	for i := range n {
		model, scenario := i%4, i/4%6
		r := &Run{Model: fmt.Sprint("vendor/model-", model), Scenario: fmt.Sprint("scenario_", scenario), Trial: i/24 + 1, Strategy: Production,
			Scored: true, OK: (model+1)*(i%7) < 12, ElapsedMS: int64(200*(1+model) + i*i%3000)}
		if !r.OK {
			r.Class, r.Error = ClassAssertionFailed, `state /draft/foo is "bar", got null`
			r.Checks = []Check{{Group: "state", Assert: `state /draft/foo is "bar"`, Got: "null"}}
			r.History = []lathe.Message{lathe.User("workspace_id=w"), lathe.Assistant("Done.")}
		}
		rep.Runs = append(rep.Runs, r)
	}
	return rep
}

// The page is drawn: its matrix has both colours, and it is neither blank nor dark where it should be light.
func TestReportIsDrawnByABrowser(t *testing.T) {
	testdata.NeedAll(t)
	browser := findBrowser(t)
	good, bad := color.RGBA{0x0b, 0x5a, 0x9c, 255}, color.RGBA{0xa8, 0x43, 0x0a, 255}
	for _, c := range []struct {
		name   string
		report *Report
		dark   bool
		want   []color.RGBA
		none   []color.RGBA
	}{
		{"one run", plainReport(1), false, []color.RGBA{{255, 255, 255, 255}, good}, []color.RGBA{bad}},
		{"500 runs", plainReport(500), false, []color.RGBA{{255, 255, 255, 255}, good, bad}, nil},
		{"500 runs in the dark", plainReport(500), true, []color.RGBA{{0x14, 0x17, 0x1b, 255}, {0x6d, 0xb3, 0xf2, 255}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			var page bytes.Buffer
			if err := c.report.WriteHTML(&page); err != nil {
				t.Fatal(err)
			}
			file, shot := filepath.Join(dir, "report.html"), filepath.Join(dir, "shot.png")
			if err := os.WriteFile(file, page.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			args := []string{"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb", "--user-data-dir=" + filepath.Join(dir, "profile"),
				"--window-size=1280,1600", "--screenshot=" + shot}
			if c.dark {
				args = append(args, "--blink-settings=preferredColorScheme=0")
			}
			if out, err := exec.CommandContext(t.Context(), browser, append(args, "file://"+file)...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			f, err := os.Open(shot)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			img, err := png.Decode(f)
			if err != nil {
				t.Fatal(err)
			}
			drawn := colours(img)
			for _, want := range c.want {
				if drawn[want] < 200 {
					t.Errorf("%d pixels of %v", drawn[want], want)
				}
			}
			for _, none := range c.none {
				if drawn[none] > 200 {
					t.Errorf("%d pixels of %v, want hardly any", drawn[none], none)
				}
			}
		})
	}
}

// colours counts the pixels of each colour.
func colours(img image.Image) map[color.RGBA]int {
	n := map[color.RGBA]int{}
	b := img.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			if c, ok := color.RGBAModel.Convert(img.At(x, y)).(color.RGBA); ok {
				n[c]++
			}
		}
	}
	return n
}
