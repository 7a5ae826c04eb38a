package loop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/lathe-run/lathe"
)

// startJSON holds the JSON form of the settings and the limits that the last run of a loop was started with. Most runs of a loop have the
// same ones, and their encoding is most of the work of a [start].
type startJSON struct {
	settings, limits         bool // whether the input has them
	parallel                 int8 // ParallelToolCalls: 0 nil, 1 false, 2 true
	ofSettings               lathe.Settings
	ofLimits                 lathe.Limits
	settingsText, limitsText []byte // never changed
}

// matches reports whether c and other have the same settings and limits, by value.
func (c *startJSON) matches(other *startJSON) bool {
	return c.settings == other.settings && c.limits == other.limits && c.parallel == other.parallel && c.ofSettings == other.ofSettings && c.ofLimits == other.ofLimits
}

// startJSON returns the JSON form of the settings and limits of in.
func (l *Loop) startJSON(in *Input) (*startJSON, error) {
	want := startJSON{settings: in.Settings != nil, limits: in.Limits != nil}
	if want.settings {
		want.ofSettings = *in.Settings
		if p := want.ofSettings.ParallelToolCalls; p != nil { // its value counts, not its address
			want.ofSettings.ParallelToolCalls, want.parallel = nil, 1
			if *p {
				want.parallel = 2
			}
		}
	}
	if want.limits {
		want.ofLimits = *in.Limits
	}
	if last := l.started.Load(); last != nil && last.matches(&want) {
		return last, nil
	}
	made := want
	var err error
	if made.settings {
		if made.settingsText, err = json.Marshal(in.Settings); err != nil {
			return nil, err
		}
	}
	if made.limits {
		if made.limitsText, err = json.Marshal(in.Limits); err != nil {
			return nil, err
		}
	}
	l.started.Store(&made)
	return &made, nil
}

// startInput returns what a later process needs to resume the run: the JSON form of a [start]. Runs with equal starts share it: the
// caller must not change it.
func (r *run) startInput() (json.RawMessage, error) {
	text, err := r.loop.appendStart(r.scratch[:0], r.in)
	if err != nil {
		return nil, fmt.Errorf("the run could not be resumed later: %w", err)
	}
	r.scratch = text
	last := r.loop.lastStart.Load()
	if last != nil && bytes.Equal(*last, text) {
		return *last, nil
	}
	made := json.RawMessage(slices.Clip(bytes.Clone(text)))
	if len(made) <= maxScratch {
		r.loop.lastStart.Store(&made)
	}
	return made, nil
}

// appendStart appends what json.Marshal returns for the [start] of in.
func (l *Loop) appendStart(dst []byte, in *Input) ([]byte, error) {
	version := startPlain
	if len(in.HostedTools) > 0 || len(in.Betas) > 0 || in.APIVersion != "" {
		version = startVersion
	}
	known, err := l.startJSON(in)
	if err != nil {
		return nil, err
	}
	w := startWriter{b: slices.Grow(dst, len(known.settingsText)+len(known.limitsText)+128)}
	w.b = strconv.AppendInt(append(w.b, `{"version":`...), int64(version), 10)
	if in.Run.Depth != 0 {
		w.b = strconv.AppendInt(append(w.b, `,"depth":`...), int64(in.Run.Depth), 10)
	}
	w.member("client_tools", len(in.ClientTools) > 0, in.ClientTools)
	w.member("allow", len(in.Allow) > 0, in.Allow)
	if in.Allow != nil && len(in.Allow) == 0 {
		w.b = append(w.b, `,"allow_none":true`...)
	}
	w.text("settings", known.settingsText)
	w.text("limits", known.limitsText)
	switch {
	case in.Sampling == nil:
	case reflect.ValueOf(in.Sampling).Elem().IsZero():
		w.text("sampling", []byte("{}"))
	default:
		w.member("sampling", true, in.Sampling)
	}
	w.member("user", in.User != "", in.User)
	w.member("overrides", len(in.Overrides) > 0, in.Overrides)
	w.member("hosted_tools", len(in.HostedTools) > 0, in.HostedTools)
	w.member("betas", len(in.Betas) > 0, in.Betas)
	w.member("api_version", in.APIVersion != "", in.APIVersion)
	w.member("client", len(in.Client) > 0, in.Client)
	if w.err != nil {
		return nil, w.err
	}
	return append(w.b, '}'), nil
}

// A startWriter appends members to an object that has at least one.
type startWriter struct {
	b   []byte
	err error // the first
}

// member appends a member if present is true.
func (w *startWriter) member(name string, present bool, value any) {
	if !present || w.err != nil {
		return
	}
	var text []byte
	if text, w.err = json.Marshal(value); w.err == nil {
		w.text(name, text)
	}
}

// text appends a member with its JSON text; it appends nothing if the text is empty.
func (w *startWriter) text(name string, text []byte) {
	if len(text) > 0 {
		w.b = append(append(append(w.b, ',', '"'), name...), '"', ':')
		w.b = append(w.b, text...)
	}
}
