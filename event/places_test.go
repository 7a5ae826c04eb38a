package event_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/reflecttest"
	"github.com/lathe-run/lathe/observe"
)

// notInSpans has the fields that spans do not show, with the reason. A key without a type is the same member of all types.
var notInSpans = map[string]string{
	// All types.
	"seq":               "the times of the spans of calls have the same order",
	"latency_ms":        "it is the length of the span",
	"tool_name":         "the span of the call has the name from ToolCallProposed",
	"bytes":             "a delta makes no span; the message is in the span of the model call",
	"content.text":      "as bytes",
	"pending":           "each call that waits has a span of its own, with its approval as an event",
	"args_preview_hash": "the span has the arguments where content is on",
	"dialect":           "how a call was written is in the store; metrics count what could not be read",

	"ModelCallStarted.content.asked": "the span has the messages where content is on",

	"RunStarted.tool_use_mode":       "a setting of the server: the same for most runs of an entry",
	"RunStarted.tool_failure_policy": "as tool_use_mode",
	"RunStarted.tools":               "the definitions are in the span of each model call where content is on",
	"RunStarted.limits":              "as tool_use_mode; the limit that was hit is in the span",
	"RunStarted.parent_run_id":       "the span of the call that started the run is the parent",
	"RunStarted.parent_tool_call_id": "as parent_run_id",
	"RunStarted.continues":           "in the store",
	"RunStarted.taken_over":          "in the store",
	"RunStarted.replays":             "in the store",
	"RunStarted.executor":            "in the store",
	"RunStarted.retention":           "in the store",
	"RunStarted.content.principal":   "who called is not in spans, whose readers are others",
	"RunStarted.content.profile":     "as principal",
	"RunStarted.content.labels":      "as principal",
	"RunStarted.content.target":      "the span has the model",
	"RunStarted.content.input":       "private to package loop",

	"ModelCallStarted.prompt_hash_v2": "prompt_hash tells prompts apart",
	"ModelCallStarted.messages":       "the messages are in the span where content is on",
	"ModelCallStarted.tools":          "as messages",

	"ToolCallDelta.index":        "as bytes",
	"ToolCallDelta.tool_call_id": "as bytes",
	"ToolCallDelta.tool":         "as bytes",

	"ToolCallProgress.tool_call_id": "a report makes no span",
	"ToolCallProgress.tool":         "as tool_call_id",
	"ToolCallProgress.done":         "as tool_call_id",
	"ToolCallProgress.total":        "as tool_call_id",

	"ModelCallFinished.attempt":               "the span has it from ModelCallStarted",
	"ModelCallFinished.provider":              "as attempt",
	"ModelCallFinished.status":                "a span that failed has error.type",
	"ModelCallFinished.tool_calls":            "each call has a span",
	"ModelCallFinished.ignored_tool_calls":    "in the store",
	"ModelCallFinished.faults":                "metrics count them",
	"ModelCallFinished.dropped":               "in the store",
	"ModelCallFinished.upstream_status":       "error.type has the code that stands for it; the log line has the status",
	"ModelCallFinished.provider_code":         "as upstream_status",
	"ModelCallFinished.content.error_message": "a server's message may repeat the prompt; the log line has it",

	"ToolCallProposed.content.tool_name":     "a name that the model made up is content; the span has the registered one, or unknown",
	"ToolCallProposed.deprecated_syntax":     "a log line warns of it",
	"ToolCallProposed.recovered":             "as dialect",
	"ToolCallProposed.args_bytes":            "as args_preview_hash",
	"ToolCallParseError.error":               "no call, no span; metrics count them",
	"ToolCallParseError.excerpt_bytes":       "as error",
	"ToolCallParseError.content.raw_excerpt": "as error",
	"ToolCallPlanned.tool_call_id":           "the span of the call has it from ToolCallProposed",
	"ToolCallPlanned.tool":                   "as tool_call_id",
	"ToolCallPlanned.args_schema_version":    "in the store",
	"ApprovalRequested.tool":                 "the span of the call has it from ToolCallProposed",
	"ApprovalRequested.args_digest":          "in the store, for the approver",
	"ApprovalRequested.expires_at":           "as args_digest",
	"ApprovalRequested.content.arguments":    "the span has the arguments from ToolCallProposed where content is on",
	"ApprovalResolved.reason_code":           "in the store and the audit log",
	"ApprovalResolved.in_request":            "of the answer of a request, which is no span of the run",
	"ApprovalResolved.content.arguments":     "as reason_code",

	"ToolCallExecuted.success":           "a span that failed has error.type",
	"ToolCallExecuted.output_truncated":  "in the store",
	"ToolCallExecuted.output_size_bytes": "metrics count the bytes",
	"ToolCallExecuted.attempts":          "in the store",
	"ToolCallExecuted.rc":                "metrics count the calls that failed by it",
	"ToolCallExecuted.child_run_id":      "the span of the child is below the span of the call",
	"ToolCallExecuted.child_usage":       "the spans of the child have it",
	"ToolCallExecuted.child_cost":        "as child_usage",
	"ToolsLoaded.tool_call_id":           "the definitions are in the span of the next model call where content is on",
	"ToolsLoaded.tools":                  "as tool_call_id",
	"ToolsLoaded.hash":                   "as tool_call_id",
	"ToolCallResult.tool":                "the span of the call has it from ToolCallProposed",
	"ToolCallResult.status":              "a span that failed has error.type",
	"ToolCallResult.message":             "the fixed text of error.type",
	"ToolCallResult.cause":               "for operators: in the log line",
	"ToolCallResult.client":              "the span has it from ToolCallProposed",
	"ToolCallResult.repaired":            "metrics count the repairs",
	"ToolCallResult.repair":              "as repaired",
	"ToolCallResult.content.blobs":       "the result in the span is text",
	"RunResumed.reason":                  "the span gets the reason with which it ends",
	"RunFinished.turns":                  "each model call has a span with its turn",
	"RunFinished.tool_calls":             "each call has a span",
	"RunFinished.blank":                  "in the store and the log line",
}

// notInMetrics has the numbers and flags that no metric counts, with the reason.
var notInMetrics = map[string]string{
	// All types.
	"seq":                         "it is a place, not a number of things",
	"bytes":                       "tokens are counted, as the server counts them",
	"attempt":                     "each attempt is counted",
	"expires_at":                  "a time",
	"tool_calls":                  "the events of the calls are counted",
	"ApprovalResolved.in_request": "decisions are counted",

	"RunStarted.tools":                     "in the log line of the run",
	"RunStarted.limits":                    "settings; the limits that were hit are counted",
	"RunStarted.taken_over":                "in the store",
	"RunStarted.retention":                 "settings",
	"ModelCallStarted.messages":            "tokens are counted",
	"ModelCallStarted.tools":               "tokens are counted",
	"ToolCallDelta.index":                  "it is a place",
	"ToolCallProgress.done":                "amounts in units of tools do not add up",
	"ToolCallProgress.total":               "as done",
	"ModelCallFinished.ignored_tool_calls": "in the store",
	"ModelCallFinished.upstream_status":    "failures are counted by error code",
	"ToolCallProposed.deprecated_syntax":   "a log line warns of it",
	"ToolCallProposed.recovered":           "in the store",
	"ToolCallProposed.args_bytes":          "in the store",
	"ToolCallParseError.excerpt_bytes":     "the errors are counted",
	"ToolCallExecuted.latency_ms":          "the time of ToolCallResult is observed",
	"ToolCallExecuted.output_truncated":    "in the store",
	"ToolCallExecuted.cached":              "in the store and the span",
	"ToolCallExecuted.attempts":            "in the store",
	"ToolCallExecuted.child_usage":         "the child's model calls are counted",
	"ToolCallExecuted.child_cost":          "as child_usage",
	"ToolCallResult.repaired":              "counted by repair",
	"RunFinished.turns":                    "model calls are counted as they begin",
	"RunFinished.usage":                    "counted with each model call",
}

// A place is a file or folder that must handle each field of an event.
type place struct {
	file, task string
	handles    func(f *field) bool
}

// Each place handles each field of each event. The failure for a field that is missing in one place lists all places.
func TestEveryFieldIsHandled(t *testing.T) {
	t.Parallel()
	places := places(t)
	for _, name := range event.Types() {
		for _, f := range fieldsOf(t, name) {
			var list strings.Builder
			complete := true
			for _, p := range places {
				state := "ok      "
				if !p.handles(f) {
					complete, state = false, "MISSING "
				}
				fmt.Fprintf(&list, "  %s  %-36s %s\n", state, p.file, p.task)
			}
			if !complete {
				t.Errorf("%v is not handled everywhere:\n%s%s", f, list.String(), readers)
			}
		}
	}
}

// readers are the places that use some fields only: whether they need a new one is a decision.
const readers = `  decide    loop/state.go, lab/replay/model.go   what of it does a resumed or a replayed run need?
  decide    loop/compact.go, internal/audit/line.go       content: what of it stays after the run, and does its hash go into the audit log?
  decide    observe/slog.go, store/summary.go    is it for the log line of the event, or for the lists of runs and calls?
  decide    internal/wire/uistream/machine.go, internal/gateway/console/web/src/run, cmd/lathe/terminal.go   do people see it?`

func places(t *testing.T) []place {
	t.Helper()
	page, compared := documented(t), readFile(t, "../lab/replay/compare.go")
	_, schemas, _ := cutSchemas(t)
	types, setters := readFile(t, console), codeOf(t, "../loop")+codeOf(t, "../tool")
	spans, metrics := shownInSpans(t), shownInMetrics(t)
	checkReasons(t, "notInSpans", notInSpans, spans)
	checkReasons(t, "notInMetrics", notInMetrics, metrics)
	return []place{
		{"event/event.go", "a member of content() if its tag is json:\"-\"", func(f *field) bool { return f.part != "" || inProcess(f) }},
		{"loop, tool", "who sets it", func(f *field) bool { return regexp.MustCompile(`\b` + f.name + `\b`).MatchString(setters) }},
		{"event/event_test.go", "the row of its type in the table contract", func(f *field) bool {
			row := contract[f.event]
			return f.part == "" || slices.Contains(strings.Fields(map[string]string{"data": row.always + " " + row.maybe, "content": row.content}[f.part]), f.member)
		}},
		{"docs/events.md", "the row of its type, in the order of the struct, with ? if it may be missing; its meaning beside it, its members in docs/internals/events.md", func(f *field) bool {
			name := f.member
			if f.optional {
				name += "?"
			}
			return f.part == "" || slices.Contains(page[f.event][f.part], name) && page.names(f.typ)
		}},
		{"server/openapi.json", "make gen", func(f *field) bool {
			return f.part == "" || strings.Contains(sectionOf(schemas, f, `"data": {"$ref": "#/components/schemas/%s"}`, "      %q: {\n"), fmt.Sprintf("%q: ", f.member))
		}},
		{"internal/gateway/console/web/events.d.ts", "make gen", func(f *field) bool {
			return f.part == "" || regexp.MustCompile(`\b`+f.member+`\??: `).MatchString(sectionOf(types, f, "  %s: {", "interface %s {\n"))
		}},
		{"observe/traces.go", "an attribute of a span, or a reason in notInSpans of event/places_test.go", func(f *field) bool {
			return f.part == "" || spans[f.key()] || reasonOf(notInSpans, f) != ""
		}},
		{"observe/metrics.go", "a metric if it counts something, or a reason in notInMetrics of event/places_test.go", func(f *field) bool {
			return !countable(f) || metrics[f.key()] || reasonOf(notInMetrics, f) != ""
		}},
		{"lab/replay/compare.go", "a row in times if it is a time or a duration", func(f *field) bool {
			timed := f.typ == reflect.TypeFor[time.Time]() || strings.HasSuffix(f.member, "_ms")
			return f.part != "data" || !timed || strings.Contains(compared, `"data.`+f.member+`": true`)
		}},
	}
}

func inProcess(f *field) bool {
	return f.typ == reflect.TypeFor[*event.Result]() || f.typ == reflect.TypeFor[*event.ModelRequest]() || f.typ == reflect.TypeFor[*lathe.Delta]()
}

func readFile(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// codeOf returns the text of the Go files of a folder, without tests.
func codeOf(t testing.TB, folder string) (text string) {
	t.Helper()
	files, err := filepath.Glob(folder + "/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", folder, len(files), err)
	}
	for _, name := range files {
		if !strings.HasSuffix(name, "_test.go") {
			text += readFile(t, name)
		}
	}
	return text
}

// sectionOf returns the line that the text has for the content of the field's type, or the block for its data.
func sectionOf(text string, f *field, line, block string) string {
	start, end := block, "}\n"
	if strings.HasPrefix(block, " ") {
		end = "      }"
	}
	if f.part == "content" {
		start, end = line, "\n"
	}
	_, rest, _ := strings.Cut(text, fmt.Sprintf(start, f.event))
	section, _, _ := strings.Cut(rest, end)
	return section
}

func countable(f *field) bool { return f.part == "data" && counts(f.typ) }

// counts reports whether values of a type are numbers or flags.
func counts(typ reflect.Type) bool {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch typ.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
		return true
	case reflect.Struct:
		for i := range typ.NumField() {
			if counts(typ.Field(i).Type) {
				return true
			}
		}
	default:
	}
	return false
}

func reasonOf(table map[string]string, f *field) string {
	_, member, _ := strings.Cut(f.key(), ".")
	return cmp.Or(table[f.key()], table[member])
}

// checkReasons finds the reasons of a table that have no field, or whose field is shown.
func checkReasons(t *testing.T, name string, table map[string]string, shown map[string]bool) {
	t.Helper()
	needed := map[string]bool{}
	for key, s := range shown {
		_, member, _ := strings.Cut(key, ".")
		needed[key], needed[member] = !s, needed[member] || !s && table[key] == ""
	}
	for key := range table {
		if !needed[key] {
			t.Errorf("%s has a reason for %s, which is shown or which no event has: remove it", name, key)
		}
	}
}

// A documentation is the rows of docs/events.md: the members of each type by part; and all names in it and in
// docs/internals/events.md, which has the members of members.
type documentation map[string]map[string][]string

var inCode = regexp.MustCompile("`([^`]+)`")

func documented(t *testing.T) documentation {
	t.Helper()
	_, table, _ := strings.Cut(readFile(t, "../docs/events.md"), "\n## The types\n")
	text, _, _ := strings.Cut(table, "\n## ")
	out := documentation{"": {"": nil}}
	for _, m := range inCode.FindAllStringSubmatch(text+readFile(t, "../docs/internals/events.md"), -1) {
		out[""][""] = append(out[""][""], m[1])
	}
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		if !strings.HasPrefix(line, "| `") || len(cells) != 4 {
			continue
		}
		row := map[string][]string{}
		for i, part := range []string{"type", "means", "data", "content"} {
			for _, m := range inCode.FindAllStringSubmatch(cells[i], -1) {
				row[part] = append(row[part], m[1])
			}
		}
		out[row["type"][0]] = row
	}
	return out
}

// names reports whether the page names the members of a struct that is in the data of an event.
func (d documentation) names(typ reflect.Type) bool {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || typ.PkgPath() == "time" || typ.Name() == "Message" || typ.Name() == "Blob" {
		return true
	}
	for _, f := range nested(typ) {
		if !slices.Contains(d[""][""], f.member) && !slices.Contains(d[""][""], f.member+"?") || !d.names(f.typ) {
			return false
		}
	}
	return true
}

// The page has a row for each type, with its members and no others, in their order.
func TestDocumentedEvents(t *testing.T) {
	t.Parallel()
	page := documented(t)
	if len(page)-1 != len(event.Types()) {
		t.Errorf("docs/events.md has %d rows for %d types", len(page)-1, len(event.Types()))
	}
	for _, name := range event.Types() {
		for _, part := range []string{"data", "content"} {
			var want []string
			for _, f := range membersIn(fieldsOf(t, name), part) {
				member := f.member
				if f.optional {
					member += "?"
				}
				want = append(want, member)
			}
			if got := page[name][part]; !slices.Equal(got, want) {
				t.Errorf("docs/events.md: %s of %s is %q, want %q", part, name, got, want)
			}
		}
	}
}

// words are values that fields have: whether a field is shown may depend on its value.
var words = []string{"", "x", "success", "ok", "error", "failed", "harmony", "timeout"}

// histories returns lists of runs that differ in the value of one field: with all events and all other fields; with no other
// field of the event but its call and its reason; and with no other event between the first and the last.
func histories(t *testing.T, f *field, base []event.Data) (lists [3][][]event.Data) {
	t.Helper()
	at := slices.Index(event.Types(), f.event)
	for n := range variants(f.typ) {
		for i := range lists {
			data := newData(t, f.event)
			v := reflect.ValueOf(data).Elem()
			if i == 1 {
				for _, other := range []string{"ToolCallID", "Reason"} {
					if o := v.FieldByName(other); o.IsValid() {
						o.SetString("x")
					}
				}
			} else {
				reflecttest.Fill(v, "x")
			}
			reflecttest.Fill(v.Field(f.index), "x")
			vary(v.Field(f.index), n)
			run := slices.Clone(base)
			run[at] = data
			if i == 2 {
				run = slices.Compact([]event.Data{run[0], data, run[len(run)-1]})
			}
			lists[i] = append(lists[i], run)
		}
	}
	return lists
}

// numbers are values of fields; the last one is a code with which tools end.
var numbers = []int64{0, 1, 2, -28}

// variants returns the number of values with which a field is tried.
func variants(typ reflect.Type) int {
	switch typ.Kind() {
	case reflect.String:
		return len(words)
	case reflect.Int, reflect.Int64, reflect.Pointer:
		return len(numbers)
	default:
		return 2
	}
}

// vary sets a field, which has a value, to its value n.
func vary(v reflect.Value, n int) {
	switch {
	case n == 0:
		v.SetZero()
	case v.Kind() == reflect.String:
		v.SetString(words[n])
	case v.CanInt():
		v.SetInt(numbers[n])
	case v.CanFloat():
		v.SetFloat(float64(numbers[n]))
	case v.Kind() == reflect.Pointer:
		vary(v.Elem(), n)
	default: // it keeps the value that it has
	}
}

// shownBy returns for some fields, by key, whether their value changes what show makes of a run.
func shownBy(t *testing.T, which func(*field) bool, show func(runs [][]event.Data) []string) map[string]bool {
	t.Helper()
	var base []event.Data
	for _, name := range event.Types() {
		data := newData(t, name)
		reflecttest.Fill(reflect.ValueOf(data).Elem(), "x")
		base = append(base, data)
	}
	shown := map[string]bool{}
	for _, name := range event.Types() {
		for _, f := range fieldsOf(t, name) {
			if !which(f) {
				continue
			}
			for _, runs := range histories(t, f, base) {
				shown[f.key()] = shown[f.key()] || len(slices.Compact(show(runs))) > 1
			}
		}
	}
	return shown
}

func emit(t *testing.T, sink event.Sink, id string, run []event.Data) {
	t.Helper()
	for i, data := range run {
		sink.Emit(t.Context(), event.Event{ID: int64(i) + 1, Time: time.Unix(int64(i), 0), RunID: id, Turn: 1, Data: data})
	}
}

// shownInSpans returns the fields that change the spans of a run, with their content.
func shownInSpans(t *testing.T) map[string]bool {
	t.Helper()
	var mu sync.Mutex
	var spans []map[string]any
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var in struct {
			ResourceSpans []struct {
				ScopeSpans []struct{ Spans []map[string]any }
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		spans = append(spans, in.ResourceSpans[0].ScopeSpans[0].Spans...)
	}))
	defer collector.Close()
	return shownBy(t, func(f *field) bool { return f.part != "" }, func(runs [][]event.Data) []string {
		traces, err := observe.NewTraces(&observe.TracesOptions{Endpoint: collector.URL, Content: true})
		if err != nil {
			t.Fatal(err)
		}
		for i, run := range runs {
			emit(t, traces, strconv.Itoa(i), run)
		}
		if err := traces.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		out := make([]string, len(runs))
		for _, span := range spans {
			i := runOf(t, span)
			out[i] += fmt.Sprintln(span)
		}
		spans = nil
		return out
	})
}

// runOf returns the number of the run that a span is of, and takes out of the span what differs in all runs.
func runOf(t *testing.T, span map[string]any) int {
	t.Helper()
	delete(span, "traceId")
	delete(span, "spanId")
	delete(span, "parentSpanId")
	attributes := map[string]any{} // whose order differs
	for _, a := range span["attributes"].([]any) {
		kv := a.(map[string]any)
		attributes[kv["key"].(string)] = kv["value"]
	}
	id := attributes["lathe.run_id"].(map[string]any)["stringValue"].(string)
	delete(attributes, "lathe.run_id")
	span["attributes"] = attributes
	run, err := strconv.Atoi(id)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func shownInMetrics(t *testing.T) map[string]bool {
	t.Helper()
	return shownBy(t, countable, func(runs [][]event.Data) (out []string) {
		for _, run := range runs {
			m := observe.NewMetrics(&observe.MetricsOptions{Conventions: observe.ConventionsBoth})
			emit(t, m, "run_1", run)
			w := httptest.NewRecorder()
			m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
			out = append(out, w.Body.String())
		}
		return out
	})
}
