package httptool

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/secret"
)

// Limits of documents.
const (
	MaxDocumentBytes    = 16 << 20
	maxDescriptionBytes = 4 << 10
)

// ImportOptions say which operations of a document become tools, and how.
type ImportOptions struct {
	// Source names the document in errors and origins.
	Source string
	// Server is the base URL of all paths. The servers in the document are ignored, so that the author of the document cannot
	// choose where requests and credentials are sent.
	Server string
	// Operations and Tags select operations, by operationId, in which * stands for any characters and ? for one, and by tag.
	// If both are empty no operation is selected. Exclude, by operationId as Operations, are not selected even so.
	Operations, Tags, Exclude []string
	Prefix                    string // stands before the name of each tool
	// Rename are whole names of tools, in place of Prefix and operationId, by operationId.
	Rename     map[string]string
	Allowlist  []string
	Allowlists map[string][]string // by operationId, before Allowlist
	Effects    map[string]lathe.Effect
	// Security are credentials by name of the security scheme: a key, a token, or user:password.
	Security map[string]secret.Secret
	// OAuth says that the client adds tokens to requests to Server. A token is the credential of each token scheme for which
	// Security has no entry. If the document has no token scheme, all operations use the token.
	OAuth bool
	// Credentials are sent with all requests, besides those of Security.
	Credentials Credentials
}

// An OperationError says what is wrong with one operation of a document.
type OperationError struct {
	Operation string // operationId, or method and path
	Err       error
}

// Error returns the operation and what is wrong with it.
func (e *OperationError) Error() string { return e.Operation + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *OperationError) Unwrap() error { return e.Err }

// Import reads an OpenAPI document and describes the operations that o names: [ReadDocument] and [Document.Import] in one call.
func Import(doc []byte, o *ImportOptions) ([]*Definition, error) {
	d, err := ReadDocument(doc)
	if err != nil {
		return nil, err
	}
	return d.Import(o)
}

// A Document is an OpenAPI document that has been read. Its methods may be called from several goroutines at once.
type Document struct{ d document }

// ReadDocument reads an OpenAPI document, 3.0 or 3.1, JSON or YAML, of at most [MaxDocumentBytes]. References outside the document are
// refused.
func ReadDocument(doc []byte) (*Document, error) {
	d := &Document{}
	if err := d.d.read(doc); err != nil {
		return nil, err
	}
	return d, nil
}

// Import describes the operations that o names, in the order of their tools' names. The errors of all operations are joined; each is
// an *[OperationError].
func (d *Document) Import(o *ImportOptions) ([]*Definition, error) { return d.d.definitions(o) }

func (d *document) definitions(o *ImportOptions) ([]*Definition, error) {
	if o.Server == "" {
		return nil, errors.New("no server: the address before the paths is not taken from the document" + d.serverAdvice())
	}
	chosen, ids, errs := d.choose(o)
	var defs []*Definition
	left := maxSchemaBytes
	for _, f := range chosen {
		def, err := d.define(f, o, &left)
		if err != nil {
			errs = append(errs, &OperationError{f.op.OperationID, err})
			continue
		}
		defs = append(defs, def)
	}
	errs = append(errs, notChosen(ids, o.Effects, "effects")...)
	errs = append(errs, notChosen(ids, o.Allowlists, "allowlists")...)
	errs = append(errs, notChosen(ids, o.Rename, "rename")...)
	for name := range o.Security {
		switch s := d.scheme(name); {
		case s == nil:
			errs = append(errs, &OperationError{"security", fmt.Errorf("the document has no security scheme %q", name)})
		case o.OAuth && acceptsToken(s):
			errs = append(errs, &OperationError{"security", fmt.Errorf("the scheme %q has a credential, and there is oauth: it has one of both", name)})
		}
	}
	if len(errs) > 0 {
		slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
		return nil, errors.Join(errs...)
	}
	slices.SortFunc(defs, func(a, b *Definition) int { return strings.Compare(a.Name, b.Name) })
	return defs, nil
}

// choose returns the operations that are named and not excluded, and their ids.
func (d *document) choose(o *ImportOptions) (chosen []pathOperation, ids map[string]bool, errs []error) {
	wanted, excluded, tags, all := map[string]int{}, map[string]int{}, map[string]int{}, []string{}
	ids = map[string]bool{}
	for _, f := range d.found {
		id := f.op.OperationID
		all = append(all, id)
		take := countMatches(o.Operations, id, wanted)
		for _, tag := range f.op.Tags {
			if slices.Contains(o.Tags, tag) {
				tags[tag]++
				take = true
			}
		}
		switch {
		case countMatches(o.Exclude, id, excluded) || !take:
		case id == "":
			errs = append(errs, &OperationError{f.method + " " + f.path, errors.New("has no operationId to name the tool after")})
		case ids[id]:
			errs = append(errs, &OperationError{id, errors.New("stands twice in the document")})
		default:
			chosen = append(chosen, f)
			ids[id] = true
		}
	}
	for _, list := range []struct {
		ids  []string
		seen map[string]int
	}{{o.Operations, wanted}, {o.Exclude, excluded}} {
		for _, id := range list.ids {
			switch n := list.seen[id]; {
			case n == 0 && strings.ContainsAny(id, "*?"):
				errs = append(errs, &OperationError{id, errors.New("the document has no operationId of this pattern")})
			case n == 0:
				errs = append(errs, &OperationError{id, errors.New("the document has no such operationId" + advice(id, all))})
			}
		}
	}
	for _, tag := range o.Tags {
		if tags[tag] == 0 {
			errs = append(errs, &OperationError{tag, errors.New("no operation of the document has this tag")})
		}
	}
	if len(o.Operations)+len(o.Tags) == 0 {
		errs = append(errs, errors.New("no operations are named: which become tools is said by operationId or tag"))
	}
	return chosen, ids, errs
}

// countMatches reports whether a pattern matches the operationId, and counts it for each that does. No pattern matches the
// empty id.
func countMatches(patterns []string, id string, counts map[string]int) (any bool) {
	for _, p := range patterns {
		if p != "" && id != "" && policy.Match(p, id) {
			counts[p]++
			any = true
		}
	}
	return any
}

// notChosen returns an error for each name that is not the id of a chosen operation.
func notChosen[T any](chosen map[string]bool, named map[string]T, where string) (errs []error) {
	for id := range named {
		if !chosen[id] {
			errs = append(errs, &OperationError{id, fmt.Errorf("named in %s, and not among the operations that are tools", where)})
		}
	}
	return errs
}

// advice returns a suggestion for an error text: the operation whose id differs from id only in letter case.
func advice(id string, all []string) string {
	for _, other := range all {
		if strings.EqualFold(id, other) {
			return fmt.Sprintf(", there is %q", other)
		}
	}
	return ""
}

// toolName makes a name for a tool of an operationId.
func toolName(prefix, id string) (string, error) {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		case r == '.', r == '/', r == ' ', r == ':':
			return '_'
		}
		return -1
	}, prefix+id)
	if name == "" || len(name) > 64 {
		return "", fmt.Errorf("%q makes no tool name of 1 to 64 characters", prefix+id)
	}
	return name, nil
}

// hidden reports whether the character is invisible.
func hidden(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp, unicode.Variation_Selector) || r == unicode.ReplacementChar || text.IsBlank(r)
}

var errHidden = errors.New("its schema has invisible characters in a name or a value, where they cannot be removed")

// checkVisible refuses a schema in which a name or value holds what a person does not see.
func checkVisible(v any) error {
	var err error
	see := func(s string) {
		if strings.ContainsFunc(s, func(r rune) bool { return hidden(r) && r != '\n' && r != '\r' && r != '\t' }) {
			err = errHidden
		}
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			see(v)
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for k, e := range v {
				see(k)
				walk(e)
			}
		}
	}
	walk(v)
	return err
}

// cleanText removes from untrusted text what people do not see and the model reads: control and format
// characters, among them direction marks and tags. It bounds the text.
func cleanText(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if hidden(r) {
			return -1
		}
		return r
	}, s)
	return strings.TrimSpace(text.Clip(s, maxDescriptionBytes))
}
