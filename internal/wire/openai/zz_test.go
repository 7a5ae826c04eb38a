package openai
import ("testing";"strings";"strconv")
func histBody() []byte {
	var b strings.Builder
	b.WriteString(`{"model":"m","stream":true,"messages":[{"role":"system","content":"Be brief."}`)
	text, note := strings.Repeat(`All work and no play \"makes\" Jack a dull boy.\n`, 12), strings.Repeat("north ", 60)
	for i := 0; b.Len() < 1_000_000; i++ {
		_, _ = strings.NewReplacer("TEXT", text, "NOTE", note, "N", strconv.Itoa(i)).WriteString(&b, `,{"role":"user","content":"N TEXT"},{"role":"assistant","content":null,"tool_calls":[{"id":"call_N","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Oslo\",\"note\":\"NOTE\"}"}}]},` +
			`{"role":"tool","tool_call_id":"call_N","content":"TEXT"},{"role":"assistant","content":"TEXT"}`)
	}
	b.WriteString(`,{"role":"user","content":"And now?"}]}`)
	return []byte(b.String())
}
func BenchmarkZ(b *testing.B) {
	body := histBody()
	b.ReportAllocs()
	for b.Loop() { if _, err := ParseAny(body); err != nil { b.Fatal(err) } }
}
