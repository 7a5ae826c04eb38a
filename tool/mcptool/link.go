package mcptool

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe/egress"
	"github.com/lathe-run/lathe/internal/httpname"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/tool"
)

// Limits of the URLs that a server asks users to visit.
const (
	maxLinkBytes = 2 << 10
	maxLinkID    = 256
	maxOpenLinks = 16               // open URLs per connection
	maxLinkTime  = 10 * time.Minute // the maximum time for which an open URL suspends the idle timeout of calls
)

// codeURLRequired is the JSON-RPC error code of a server that requires a visit of a URL before the call.
const codeURLRequired = "-32042"

var errLink = errors.New("an address that is not written in plain form, or is not https")

// readLink reads an elicitation in URL mode. The URL is shown to a person and never requested by this process.
func readLink(server string, params []byte) (*question, error) {
	message, _ := clean(rawjson.TextAt(params, "message"))
	address := rawjson.TextAt(params, "url")
	if err := checkLink(address); err != nil {
		return nil, err
	}
	id := rawjson.TextAt(params, "elicitationId")
	if len(id) > maxLinkID {
		return nil, errLink
	}
	return &question{id: id, ask: tool.Question{Link: &tool.Link{URL: address,
		Message: "the MCP server " + server + " asks: " + text.Clip(message, maxQuestionBytes)}}}, nil
}

// checkLink returns an error unless a person can read the host of the URL: https, or http on this machine, in printable ASCII and without a
// user. Escapes in the host are decoded before the check.
func checkLink(address string) error {
	if len(address) > maxLinkBytes || strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }) {
		return errLink
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Opaque != "" {
		return errLink
	}
	if _, plain := egress.PlainHost(u.Hostname()); !plain {
		return errLink
	}
	if u.Scheme == "https" || u.Scheme == "http" && httpname.IsLoopback(u.Hostname()) {
		return nil
	}
	return errLink
}

// askToOpen asks the user of the call's client to visit the URLs in the error fault. If it returns nil, the caller may repeat the call.
func (s *supervisor) askToOpen(ctx context.Context, fault []byte) error {
	questions, hosts, err := readLinks(s.conf.Name, fault)
	if err != nil {
		s.refusedRequest()
		return &inputError{"the server wants a person to visit something first that cannot be shown: " + err.Error()}
	}
	if len(questions) == 0 {
		return &inputError{"the server wants a person to visit an address first, and names none"}
	}
	first := "the server wants a person to visit " + text.Clip(strings.Join(hosts, ", "), maxMessage) + " first"
	if s.conf.Elicitation != ElicitAskURLs {
		s.refusedRequest()
		return &inputError{first + ", which its configuration does not allow: elicitation is ask-urls where it does"}
	}
	got, err := tool.AskerFrom(ctx).Ask(ctx, questions)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return &inputError{first + ", and no user can be asked"}
	}
	for name := range questions {
		if a, ok := got[name]; !ok || a.Refused != "" {
			return &inputError{first + ", and the person does not"}
		}
	}
	return nil
}

// readLinks returns the URLs in the error fault as questions, and their hosts.
func readLinks(server string, fault []byte) (questions map[string]tool.Question, hosts []string, err error) {
	questions = map[string]tool.Question{}
	for raw := range rawjson.Elements(rawjson.At(fault, "data", "elicitations")) {
		if rawjson.TextAt(raw, "mode") != "url" || len(questions) == maxInputs {
			return nil, nil, errLink
		}
		q, err := readLink(server, raw)
		if err != nil {
			return nil, nil, err
		}
		q.ask.Link.Before = true
		questions["link "+strconv.Itoa(len(questions)+1)] = q.ask
		if u, err := url.Parse(q.ask.Link.URL); err == nil {
			hosts = append(hosts, u.Hostname())
		}
	}
	return questions, hosts, nil
}

// visiting suspends the idle timeout of calls until the server reports that the user has finished at the URL with this id, for maxLinkTime
// at most.
func (t *tap) visiting(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id == "" || t.links[id] != nil || len(t.links) >= maxOpenLinks {
		return
	}
	if t.links == nil {
		t.links = map[string]*time.Timer{}
	}
	t.questions++
	t.links[id] = time.AfterFunc(maxLinkTime, func() { t.visited(id) })
}

// visited resumes the idle timeout that visiting suspended for this id.
func (t *tap) visited(id string) {
	t.mu.Lock()
	timer := t.links[id]
	delete(t.links, id)
	t.mu.Unlock()
	if timer != nil {
		timer.Stop()
		t.resumeIdle()
	}
}
