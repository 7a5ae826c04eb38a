package console_test

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/internal/testdata"
)

const exactDriver = begin + `
try {
  await until("the page", () => document.documentElement.dataset.ready);
  const { hidden, visible, exactly, writable } = await import("/text/visible.js");
  const { layout, member, content } = await import("/text/jsontext.js");
  const edges = [];
  for (let point = 0, was = false; point <= 0x10FFFF; point++) {
    if (hidden(point) !== was) edges.push(point);
    was = hidden(point);
  }
  report.edges = edges.join();
  const bare = (json) => { // without the white space between tokens
    let out = "", quoted = false;
    for (let i = 0; i < json.length; i++) {
      if (json[i] === '"') quoted = !quoted;
      if (quoted && json[i] === "\\") out += json[i++];
      if (quoted || !" \t\r\n".includes(json[i])) out += json[i];
    }
    return out;
  };
  const faults = [], text = (cut) => cut.map(([s]) => s).join("");
  for (const json of ['{}', ' { } ', '[]', '{"a":[],"b":{}}', '[[[1]],{"a":{"b":[0,-0.0,1E+2]}}]', '{"a\\"b":"\\\\\\\\","c":"x:y,{}[]","":null}', '{"a":1,"a":2}', '{"10":1,"2":2}',
    '{"n":12345678901234567890,"m":1e400,"k":-0}', '{"s":"  two  spaces\\n "}', '[true,false,null,"\\u202e"]', '['.repeat(200) + ']'.repeat(200)]) {
    const laid = layout(json);
    if (laid === undefined || bare(laid) !== bare(json)) faults.push(json + " -> " + laid);
    if (text(exactly(json)) !== laid) faults.push("shown " + json);
    if (bare(writable(json)) !== bare(json)) faults.push("written " + json);
  }
  for (const word of ['{"a":1', '{"a":1}}', 'text', '"text"', '12', '']) if (layout(word) !== undefined) faults.push("laid " + word);
  const cut = '{"a":' + "\u202e";
  if (text(exactly(cut)) !== visible(cut)) faults.push("cut " + text(exactly(cut)));
  const tagged = '{"a":"\u202e\u{E0041}"}';
  if (JSON.parse(writable(tagged)).a !== "\u202e\u{E0041}" || /[^ -~\n]/.test(writable(tagged))) faults.push("writable");
  for (const [json, name, want] of [['{"a":1,"b":{"a":2}}', "a", "1"], ['{"b":{"a":2}, "a" : [1, 2] }', "a", "[1, 2]"], ['{"x":"a","a":"b"}', "a", '"b"'], ['{"\\u0061":3}', "a", "3"],
    ['{"a":1,"a":12345678901234567890}', "a", "12345678901234567890"], ['{"b":1}', "a", undefined], ['{"a":"}{"}', "a", '"}{"']]) {
    if (member(json, name) !== want) faults.push(json + " has " + member(json, name));
  }
  if (content('"a\\n"') !== "a\n" || content("1e400") !== "1e400") faults.push("content");
  const began = performance.now();
  const big = JSON.stringify({ list: Array.from({ length: 2600 }, (_, i) => "item " + i), hidden: "\u200b".repeat(20000), last: "END" });
  report.big = String(text(exactly(big)).endsWith('"last": "END"\n}'));
  if (performance.now() - began > 5000) faults.push("slow");
  report.visible = visible("a\u202eb\u{E0041}c\u00ad\u00e9\n\u{1F600}");
  report.faults = faults.join("; ");
} catch (e) {
  report.error = e.message + e.stack;
}
await send();
`

// What an approval card shows of arguments is their text: every code point is hidden or seen as approval.Visible has
// it, and nothing differs from the text but white space between tokens.
func TestT23_CardShowsExactArguments(t *testing.T) {
	t.Parallel()
	testdata.NeedAll(t)
	var edges []string
	was := false
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if is := isHidden(r); is != was {
			edges, was = append(edges, strconv.Itoa(int(r))), is
		}
	}
	want := map[string]string{"edges": strings.Join(edges, ","), "faults": "", "error": "", "big": "true",
		"visible": approval.Visible("a\u202eb\U000E0041c\u00adé\n\U0001F600")}
	report := newStage(exactDriver).browse(t, "1280,860")
	for name, want := range want {
		if report[name] != want {
			t.Errorf("%s is %q, want %q", name, report[name], want)
		}
	}
}
