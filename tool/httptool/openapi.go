package httptool

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/egress"
	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/tool"
)

// This file selects the operations of an OpenAPI document that become tools, and names the tools.

// Limits of documents.
const (
	// MaxDocumentBytes is the maximum size of a document that [ReadDocument] accepts.
	MaxDocumentBytes    = 16 << 20
	maxDescriptionBytes = 4 << 10
)

// ImportOptions select the operations of an OpenAPI document that become tools, and configure these tools. Server and a selection are
// required. An entry of Operations, Tags or Exclude that matches nothing is an error, and so is an entry of Rename, Allowlists or Effects for
// an operation that is not selected.
type ImportOptions struct {
	// Source is the name of the document in errors and origins.
	Source string
	// Server is the base URL of all paths; required. The servers that the document names are ignored, so that its author cannot choose where
	// requests and credentials are sent.
	Server string
	// Operations selects operations by operationId, with * for any characters and ? for one byte; Tags selects them by tag. If both are
	// empty, no operation is selected. Exclude lists operations that are not selected, with the same patterns. An operation without an
	// operationId gets one of its method and path: get_users_id for GET /users/{id}.
	Operations, Tags, Exclude []string
	// OnLeftOut, if not nil, is called, in the order of ids, for each selected operation that cannot be a tool, such as one whose body is a
	// file. Such an operation is an error instead if OnLeftOut is nil, if Operations contains its exact operationId, or if no operation can
	// be a tool.
	OnLeftOut func(*OperationError)
	Prefix    string // put before the operationId in each tool's name
	// Rename maps operationIds to complete tool names, without Prefix.
	Rename     map[string]string
	Allowlist  []string                // of all tools; each tool needs one
	Allowlists map[string][]string     // by operationId; replaces Allowlist
	Effects    map[string]lathe.Effect // by operationId; replaces the effect of the method
	// Security are the credentials for the security schemes of the document, by name of the scheme: a key, a token, or user:password. A name
	// that the document does not have is an error.
	Security map[string]secret.Secret
	// OAuth says that the HTTP client adds tokens to requests to Server. The token then satisfies every token scheme without an entry in
	// Security. If the document has no token scheme, all operations use the token.
	OAuth bool
	// Credentials are sent with all requests, in addition to those of Security.
	Credentials Credentials
}

// An OperationError is the error of one operation of a document.
type OperationError struct {
	Operation string // operationId
	Err       error
}

// Error returns the operation and the text of Err.
func (e *OperationError) Error() string { return e.Operation + ": " + e.Err.Error() }

// Unwrap returns Err.
func (e *OperationError) Unwrap() error { return e.Err }

// Import calls [ReadDocument] and then [Document.Import], and returns their errors.
func Import(doc []byte, o *ImportOptions) ([]*Definition, error) {
	d, err := ReadDocument(doc)
	if err != nil {
		return nil, err
	}
	return d.Import(o)
}

// A Document is a parsed OpenAPI document. Its methods may be called from several goroutines at once.
type Document struct {
	root  map[string]any // plain values, which are never changed: maps, lists, strings, booleans, nil and [json.Number]
	v30   bool
	v32   bool
	found []pathOperation // the operations, sorted by path and method
	// readOnly and writeOnly report that a member may be marked so. Most documents have no such member.
	readOnly, writeOnly bool
}

// ReadDocument parses an OpenAPI document of version 3.0 to 3.2, in JSON or YAML, of at most [MaxDocumentBytes] (16 MiB). References to other
// documents are errors.
func ReadDocument(doc []byte) (*Document, error) {
	d := &Document{}
	if err := d.read(doc); err != nil {
		return nil, err
	}
	return d, nil
}

// Import returns the definitions of the operations that o selects, sorted by tool name. If there are errors, it returns no definitions and
// joins the errors; the error of an operation is an *[OperationError].
func (d *Document) Import(o *ImportOptions) ([]*Definition, error) {
	if o.Server == "" {
		return nil, errors.New("no server: the address before the paths is not taken from the document" + d.serverAdvice())
	}
	chosen, ids, errs := d.choose(o)
	made, leftOut, bad := d.defineAll(chosen, o)
	if o.OnLeftOut != nil {
		made, leftOut = withoutClashes(made, leftOut)
	}
	if o.OnLeftOut == nil || len(made) == 0 {
		for _, one := range leftOut {
			errs = append(errs, one)
		}
	}
	errs = slices.Concat(errs, bad, d.checkSecurity(o), notChosen(ids, o.Effects, "effects"), notChosen(ids, o.Allowlists, "allowlists"), notChosen(ids, o.Rename, "rename"))
	if len(errs) > 0 {
		slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
		return nil, errors.Join(errs...)
	}
	slices.SortFunc(leftOut, func(a, b *OperationError) int { return strings.Compare(a.Operation, b.Operation) })
	for _, one := range leftOut {
		o.OnLeftOut(one)
	}
	defs := make([]*Definition, len(made))
	for i, one := range made {
		defs[i] = one.def
	}
	slices.SortFunc(defs, func(a, b *Definition) int { return strings.Compare(a.Name, b.Name) })
	return defs, nil
}

// checkSecurity returns an error for each credential that belongs to no security scheme, or to one that OAuth satisfies.
func (d *Document) checkSecurity(o *ImportOptions) (errs []error) {
	for name := range o.Security {
		switch s := d.scheme(name); {
		case s == nil:
			errs = append(errs, &OperationError{"security", fmt.Errorf("the document has no security scheme %q", name)})
		case o.OAuth && acceptsToken(s):
			errs = append(errs, &OperationError{"security", fmt.Errorf("the scheme %q has a credential, and there is oauth: it has one of both", name)})
		}
	}
	return errs
}

// A choice is a selected operation.
type choice struct {
	pathOperation
	optional bool        // selected only by patterns or tags, so that it may be left out
	twice    bool        // another operation has the same id
	def      *Definition // set by complete
}

func (c *choice) wrong(err error) *OperationError { return &OperationError{c.op.OperationID, err} }

// defineAll makes the definitions of the operations. leftOut are the errors of optional operations, bad those of others.
func (d *Document) defineAll(chosen []*choice, o *ImportOptions) (made []*choice, leftOut []*OperationError, bad []error) {
	left := maxSchemaBytes
	answers := newShapes(d, &left)
	for _, c := range chosen {
		err := c.complete(answers, o)
		switch {
		case err == nil:
			made = append(made, c)
		case c.optional && !errors.Is(err, errTooLarge):
			leftOut = append(leftOut, c.wrong(err))
		default:
			bad = append(bad, c.wrong(err))
		}
	}
	answers.finish()
	return made, leftOut, bad
}

// complete sets the definition. It returns the error that prevents a tool of the operation.
func (c *choice) complete(answers *shapes, o *ImportOptions) (err error) {
	if c.twice {
		return errors.New("two operations of the document have this operationId: give one of them another, or exclude both")
	}
	if c.def, err = answers.doc.define(c.pathOperation, o, answers.left); err != nil {
		return err
	}
	if c.def.document.answers, err = answers.ofAnswers(c.op.Responses); err != nil {
		return err
	}
	if c.optional && o.OnLeftOut != nil {
		return c.def.check()
	}
	return nil
}

// withoutClashes leaves out operations whose tool name another operation has, except those that Operations names: these are reported when
// the set of tools is made.
func withoutClashes(made []*choice, leftOut []*OperationError) ([]*choice, []*OperationError) {
	byName := map[string][]*choice{}
	for _, c := range made {
		byName[c.def.Name] = append(byName[c.def.Name], c)
	}
	var unique []*choice
	for name, same := range text.ByName(byName) {
		for i, c := range same {
			if len(same) == 1 || !c.optional {
				unique = append(unique, c)
				continue
			}
			other := same[(i+1)%len(same)] // the next one, or the first after the last
			leftOut = append(leftOut, c.wrong(fmt.Errorf("the name %s is also that of %q: rename one of them", name, other.op.OperationID)))
		}
	}
	return unique, leftOut
}

// check returns the error that prevents a tool for the definition. It ignores a missing allowlist, which is an error of the configuration
// that New reports.
func (d *Definition) check() error {
	one, err := New(d, new(egress.Client), nil) // the client sends nothing
	if err == nil {
		_, err = tool.NewSet(one)
	}
	if field, ok := errors.AsType[*FieldError](err); ok && field.Field == "allowlist" {
		return nil
	}
	if e, ok := errors.AsType[*lathe.Error](err); ok {
		return e.Err
	}
	return err
}

// choose returns the selected operations and their ids.
func (d *Document) choose(o *ImportOptions) (chosen []*choice, ids map[string]bool, errs []error) {
	used := map[string]bool{} // patterns that match an operation
	tags := map[string]bool{} // tags of operations
	count := map[string]int{} // operations by id
	ids = map[string]bool{}
	for _, f := range d.found {
		count[f.op.OperationID]++
	}
	for _, f := range d.found {
		id := f.op.OperationID
		selected := markMatches(o.Operations, id, used)
		for _, tag := range f.op.Tags {
			tags[tag] = true
			selected = selected || slices.Contains(o.Tags, tag)
		}
		excluded := markMatches(o.Exclude, id, used)
		if selected && !excluded && !ids[id] {
			chosen = append(chosen, &choice{pathOperation: f, optional: !slices.Contains(o.Operations, id), twice: count[id] > 1})
			ids[id] = true
		}
	}
	for _, pattern := range slices.Concat(o.Operations, o.Exclude) {
		if used[pattern] {
			continue
		}
		why := "the document has no such operationId" + d.advice(pattern)
		if strings.ContainsAny(pattern, "*?") {
			why = "the document has no operationId of this pattern"
		}
		errs = append(errs, &OperationError{pattern, errors.New(why)})
	}
	for _, tag := range o.Tags {
		if !tags[tag] {
			errs = append(errs, &OperationError{tag, errors.New("no operation of the document has this tag")})
		}
	}
	if len(o.Operations)+len(o.Tags) == 0 {
		errs = append(errs, errors.New("no operations are named: name those that become tools in operations, by operationId, or in tags"))
	}
	return chosen, ids, errs
}

// markMatches adds each pattern that equals or matches the operationId to used. It returns false if none does.
func markMatches(patterns []string, id string, used map[string]bool) bool {
	matches := false
	for _, p := range patterns {
		if p == id || policy.Match(p, id) {
			used[p] = true
			matches = true
		}
	}
	return matches
}

// notChosen returns an error for each name that is not the id of a selected operation.
func notChosen[T any](chosen map[string]bool, named map[string]T, where string) (errs []error) {
	for id := range named {
		if !chosen[id] {
			errs = append(errs, &OperationError{id, fmt.Errorf("named in %s, and not among the operations that are tools", where)})
		}
	}
	return errs
}

// advice returns a suggestion for an error text: an operation whose id differs only in letter case.
func (d *Document) advice(id string) string {
	for _, f := range d.found {
		if strings.EqualFold(id, f.op.OperationID) {
			return fmt.Sprintf(", there is %q", f.op.OperationID)
		}
	}
	return ""
}

// toolName returns the name of an operation's tool: the prefix and the operationId, without characters that are not allowed. If no
// character of the id is allowed, method and path replace it. See [text.ToolName] for a name that is too long.
func toolName(prefix string, f pathOperation) (string, error) {
	name := cmp.Or(plainName(f.op.OperationID), plainName(pathName(f.method, f.path)))
	if name == "" {
		return "", fmt.Errorf("%.100q has no letter or digit of ASCII for a tool name: name the tool in rename", f.op.OperationID)
	}
	return text.ToolName(plainName(prefix)+name, f.op.OperationID), nil
}

// pathName returns the operationId for an operation without one: the method in lower case and the letters and digits of the path, joined by
// _.
func pathName(method, path string) string {
	parts := strings.FieldsFunc(path, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.Join(append([]string{strings.ToLower(method)}, parts...), "_")
}

var notInToolNames = lazy.Regexp(`[^\w-]`)

// plainName returns s with _ in place of '.', '/', ':' and blanks, and without other characters that a tool name may not contain.
func plainName(s string) string {
	return notInToolNames().ReplaceAllString(strings.NewReplacer(".", "_", "/", "_", ":", "_", " ", "_").Replace(s), "")
}

// invisible reports whether people do not see the character.
func invisible(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp, unicode.Variation_Selector) || r == unicode.ReplacementChar || text.IsBlank(r)
}

var errHidden = errors.New("its schema has invisible characters in a name or a value, where they cannot be removed")

// checkVisible returns an error for a schema with an invisible character in a name or value.
func checkVisible(v any) error {
	switch v := v.(type) {
	case string:
		if strings.ContainsFunc(v, func(r rune) bool { return invisible(r) && r != '\n' && r != '\r' && r != '\t' }) {
			return errHidden
		}
	case []any:
		for _, e := range v {
			if err := checkVisible(e); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, e := range v {
			if err := cmp.Or(checkVisible(name), checkVisible(e)); err != nil {
				return err
			}
		}
	}
	return nil
}

// cleanText removes characters from untrusted text that are invisible to people but not to models: control and format characters, such as
// direction marks and tags. It limits the text to maxDescriptionBytes.
func cleanText(s string) string {
	s = strings.Map(func(r rune) rune {
		if invisible(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
	return strings.TrimSpace(text.Clip(s, maxDescriptionBytes))
}
