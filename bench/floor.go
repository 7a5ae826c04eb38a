package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// floorStd is a typical client written by hand: net/http, bufio and encoding/json structs.
func floorStd(v variant, client *http.Client, base string) (func() error, error) {
	type function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	}
	type call struct {
		Index    int      `json:"index"`
		ID       string   `json:"id,omitempty"`
		Type     string   `json:"type,omitempty"`
		Function function `json:"function"`
	}
	type message struct {
		Role       string `json:"role"`
		Content    string `json:"content"`
		ToolCalls  []call `json:"tool_calls,omitempty"`
		ToolCallID string `json:"tool_call_id,omitempty"`
	}
	type request struct {
		Model    string          `json:"model"`
		Stream   bool            `json:"stream,omitempty"`
		Tools    json.RawMessage `json:"tools"`
		Messages []message       `json:"messages"`
	}
	type response struct {
		Choices []struct {
			Delta   message `json:"delta"`
			Message message `json:"message"`
		} `json:"choices"`
	}
	tools := json.RawMessage(toolsJSON)
	return func() error {
		req := request{Model: "gpt-4o-mini", Stream: v.stream, Tools: tools, Messages: []message{{Role: "user", Content: prompt}}}
		for range v.rounds + 1 {
			body, err := json.Marshal(&req)
			if err != nil {
				return err
			}
			hr, err := http.NewRequest(http.MethodPost, base+"/chat/completions", bytes.NewReader(body))
			if err != nil {
				return err
			}
			hr.Header.Set("Content-Type", "application/json")
			hr.Header.Set("Authorization", "Bearer k")
			resp, err := client.Do(hr)
			if err != nil {
				return err
			}
			var msg message
			if v.stream {
				msg.Role = "assistant"
				var text strings.Builder
				sc := bufio.NewScanner(resp.Body)
				for sc.Scan() {
					line, ok := bytes.CutPrefix(sc.Bytes(), []byte("data: "))
					if !ok || string(line) == "[DONE]" {
						continue
					}
					var ch response
					if err := json.Unmarshal(line, &ch); err != nil {
						return err
					}
					if len(ch.Choices) == 0 {
						continue
					}
					d := &ch.Choices[0].Delta
					text.WriteString(d.Content)
					for _, tc := range d.ToolCalls {
						for len(msg.ToolCalls) <= tc.Index {
							msg.ToolCalls = append(msg.ToolCalls, call{Type: "function", Index: len(msg.ToolCalls)})
						}
						m := &msg.ToolCalls[tc.Index]
						if tc.ID != "" {
							m.ID, m.Function.Name = tc.ID, tc.Function.Name
						}
						m.Function.Arguments += tc.Function.Arguments
					}
				}
				if err := sc.Err(); err != nil {
					return err
				}
				msg.Content = text.String()
			} else {
				var r response
				if err := json.NewDecoder(resp.Body).Decode(&r); err != nil {
					return err
				}
				msg = r.Choices[0].Message
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if len(msg.ToolCalls) == 0 {
				return checkAnswer(msg.Content)
			}
			req.Messages = append(req.Messages, msg)
			for _, tc := range msg.ToolCalls {
				if !json.Valid([]byte(tc.Function.Arguments)) {
					return errWrong
				}
				req.Messages = append(req.Messages, message{Role: "tool", Content: toolResult, ToolCallID: tc.ID})
			}
		}
		return errWrong
	}, nil
}

const toolsJSON = `[{"type":"function","function":{"name":"` + toolName + `","description":"Looks a key up.","parameters":` + toolSchema + `}}]`

// floorReuse is the least that the machine must do: the RoundTripper is called directly, the request
// body grows by appending, one pass walks each chunk, and every buffer is used again.
func floorReuse(v variant, client *http.Client, base string) (func() error, error) {
	u, err := url.Parse(base + "/chat/completions")
	if err != nil {
		return nil, err
	}
	tr := client.Transport
	if tr == nil {
		tr = http.DefaultTransport
	}
	header := http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer k"}}
	start := `{"model":"gpt-4o-mini","tools":` + toolsJSON + `,"messages":[{"role":"user","content":"` + prompt + `"}`
	if v.stream {
		start = `{"stream":true,` + start[1:]
	}
	var body, in []byte
	var m flatMessage
	return func() error {
		body = append(body[:0], start...)
		for range v.rounds + 1 {
			n := len(body)
			body = append(body, "]}"...)
			rd := &readCloser{}
			rd.Reset(body)
			resp, err := tr.RoundTrip(&http.Request{Method: http.MethodPost, URL: u, Host: u.Host, Header: header, Body: rd, ContentLength: int64(len(body)),
				Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1})
			if err != nil {
				return err
			}
			body = body[:n]
			m.reset()
			if v.stream {
				in, err = m.stream(resp.Body, in)
			} else {
				in, err = readAll(resp.Body, in[:0])
				m.walk(in)
			}
			resp.Body.Close()
			if err != nil {
				return err
			}
			if len(m.calls) == 0 {
				if string(m.text) != answer {
					return errWrong
				}
				return nil
			}
			body = append(body, `,{"role":"assistant","content":null,"tool_calls":[`...)
			for i := range m.calls {
				if i > 0 {
					body = append(body, ',')
				}
				c := &m.calls[i]
				if !json.Valid(c.args) {
					return errWrong
				}
				body = append(append(append(body, `{"id":"`...), c.id...), `","type":"function","function":{"name":"`...)
				body = append(append(body, c.name...), `","arguments":"`...)
				body = appendEscaped(body, c.args)
				body = append(body, `"}}`...)
			}
			body = append(body, "]}"...)
			for i := range m.calls {
				body = append(append(append(body, `,{"role":"tool","tool_call_id":"`...), m.calls[i].id...), `","content":"`...)
				body = appendEscaped(body, []byte(toolResult))
				body = append(body, `"}`...)
			}
		}
		return errWrong
	}, nil
}

type readCloser struct{ bytes.Reader }

func (*readCloser) Close() error { return nil }

func readAll(r io.Reader, buf []byte) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
}

func appendEscaped(dst, s []byte) []byte {
	for _, c := range s {
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// A flatMessage is filled by one pass over the JSON: it knows the path by the keys that it looks for.
type flatMessage struct {
	text  []byte
	calls []flatCall
}

type flatCall struct{ id, name, args []byte }

func (m *flatMessage) reset() {
	m.text = m.text[:0]
	m.calls = m.calls[:0]
}

func (m *flatMessage) stream(r io.Reader, buf []byte) ([]byte, error) {
	buf = buf[:0]
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, make([]byte, max(32<<10, cap(buf)))...)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		used := 0
		for {
			i := bytes.IndexByte(buf[used:], '\n')
			if i < 0 {
				break
			}
			line := buf[used : used+i]
			used += i + 1
			if len(line) > 6 && line[6] == '{' {
				m.walk(line[6:])
			}
		}
		buf = buf[:copy(buf, buf[used:])]
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
}

// walk visits every value once and acts on the keys it knows.
func (m *flatMessage) walk(b []byte) {
	w := walker{b: b, m: m}
	w.value("")
}

type walker struct {
	b   []byte
	i   int
	m   *flatMessage
	cur *flatCall
}

func (w *walker) space() {
	for w.i < len(w.b) && (w.b[w.i] == ' ' || w.b[w.i] == '\n' || w.b[w.i] == '\t' || w.b[w.i] == '\r') {
		w.i++
	}
}

func (w *walker) str() (raw []byte, escaped bool) {
	w.i++
	start := w.i
	for w.i < len(w.b) {
		switch w.b[w.i] {
		case '"':
			raw = w.b[start:w.i]
			w.i++
			return raw, escaped
		case '\\':
			escaped = true
			w.i += 2
		default:
			w.i++
		}
	}
	return w.b[start:], escaped
}

func (w *walker) value(key string) {
	w.space()
	if w.i >= len(w.b) {
		return
	}
	switch w.b[w.i] {
	case '{':
		w.i++
		for {
			w.space()
			if w.i >= len(w.b) || w.b[w.i] == '}' {
				w.i++
				return
			}
			if w.b[w.i] == ',' {
				w.i++
				continue
			}
			k, _ := w.str()
			w.space()
			w.i++ // :
			w.member(k)
		}
	case '[':
		w.i++
		for {
			w.space()
			if w.i >= len(w.b) || w.b[w.i] == ']' {
				w.i++
				return
			}
			if w.b[w.i] == ',' {
				w.i++
				continue
			}
			w.value(key)
		}
	case '"':
		w.str()
	default:
		for w.i < len(w.b) && w.b[w.i] != ',' && w.b[w.i] != '}' && w.b[w.i] != ']' {
			w.i++
		}
	}
}

func (w *walker) member(k []byte) {
	w.space()
	isString := w.i < len(w.b) && w.b[w.i] == '"'
	switch {
	case isString && string(k) == "content":
		w.m.text = w.unescape(w.m.text)
	case isString && string(k) == "id" && w.cur != nil:
		w.cur.id = w.unescape(w.cur.id)
	case isString && string(k) == "name" && w.cur != nil:
		w.cur.name = w.unescape(w.cur.name)
	case isString && string(k) == "arguments" && w.cur != nil:
		w.cur.args = w.unescape(w.cur.args)
	case string(k) == "tool_calls" && w.i < len(w.b) && w.b[w.i] == '[':
		w.i++
		for n := 0; ; {
			w.space()
			if w.i >= len(w.b) || w.b[w.i] == ']' {
				w.i++
				break
			}
			if w.b[w.i] == ',' {
				w.i++
				continue
			}
			w.call(n)
			n++
		}
		w.cur = nil
	default:
		w.value("")
	}
}

// call finds the element's index first, which every server in this bench sends first.
func (w *walker) call(pos int) {
	at := pos
	const p = `{"index":`
	if bytes.HasPrefix(w.b[w.i:], []byte(p)) {
		at = 0
		for j := w.i + len(p); j < len(w.b) && w.b[j] >= '0' && w.b[j] <= '9'; j++ {
			at = at*10 + int(w.b[j]-'0')
		}
	}
	for len(w.m.calls) <= at {
		if len(w.m.calls) < cap(w.m.calls) {
			w.m.calls = w.m.calls[:len(w.m.calls)+1]
			c := &w.m.calls[len(w.m.calls)-1]
			c.id, c.name, c.args = c.id[:0], c.name[:0], c.args[:0]
		} else {
			w.m.calls = append(w.m.calls, flatCall{})
		}
	}
	w.cur = &w.m.calls[at]
	w.value("")
}

func (w *walker) unescape(dst []byte) []byte {
	raw, escaped := w.str()
	if !escaped {
		return append(dst, raw...)
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			dst = append(dst, raw[i])
			continue
		}
		i++
		switch raw[i] {
		case 'n':
			dst = append(dst, '\n')
		case 't':
			dst = append(dst, '\t')
		default:
			dst = append(dst, raw[i])
		}
	}
	return dst
}
