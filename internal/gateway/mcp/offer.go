package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/tool"
)

// A Catalog contains the resources and prompts that the server offers to clients.
type Catalog struct {
	Resources []Resource
	Prompts   []Prompt
}

// A Resource is content that clients can read: a text, bytes, the result of a function, or the files of a folder. Exactly one of Text,
// Data, Read and Files is set.
type Resource struct {
	// Name has 1 to 50 of the characters a-z, A-Z, 0-9, _ and -. For policies and events the resource is the read-only tool resource__NAME
	// with the argument `uri`.
	Name string
	// URI is the address of the resource. If it has parts of the form {name} it is a template: each part matches any
	// non-empty text without /, ? and #. With Files it is the prefix of the URIs of the files.
	URI                string
	Title, Description string
	MediaType          string   // default: by the file name or the first bytes
	Labels             []string // see [lathe.ToolSpec].Labels
	// Values are the completions that are suggested for the parts of a template. Other values are accepted, too.
	Values map[string][]string

	Text string // parts of the form {name} in it are replaced by their values
	Data []byte
	// Read returns the content at the URI. An error that wraps fs.ErrNotExist means that the URI has no content. As for a tool, Read may be
	// called from several goroutines at once and must return soon after ctx is done.
	Read func(ctx context.Context, uri string, parts map[string]string) (*lathe.Blob, error)
	// Files is a file system that is read at each request. Use the FS of an os.Root: symbolic links cannot leave it. Files
	// whose path or name matches one pattern of Match are offered; a nil Match offers all. Names that begin with a dot are
	// never offered.
	Files fs.FS
	Match []string

	MaxBytes int // bytes of the content; default 1 MiB, at most 8 MiB
}

// A Prompt is a template for the first messages of a conversation. The user of the client selects it.
type Prompt struct {
	// Name has the same form as the name of a [Resource]. For policies and events the prompt is the tool prompt__NAME.
	Name               string
	Title, Description string
	Labels             []string
	Arguments          []Argument
	// Messages are the messages of the prompt. The server replaces {name} in their texts and resource URIs by the argument.
	Messages []PromptMessage
	// Render, if Messages is empty, returns the messages for the arguments. It has the same obligations as Resource.Read.
	Render func(ctx context.Context, args map[string]string) ([]PromptMessage, error)
}

// An Argument is a text argument of a prompt.
type Argument struct {
	Name, Title, Description string
	Required                 bool
	Values                   []string // suggested completions; other values are accepted, too
}

// A PromptMessage is one message of a prompt: a text, a resource of the catalog by its URI, or a blob.
type PromptMessage struct {
	Role     lathe.Role // user or assistant; user
	Text     string
	Resource string
	Blob     *lathe.Blob
}

// Limits of a catalog.
const (
	maxOffers       = 1_000 // resources and prompts
	maxParts        = 8     // names in braces in one template
	maxResource     = 8 << 20
	defaultResource = 1 << 20
	maxPrompt       = 1 << 20 // bytes of a rendered prompt
	maxURI          = 2_048
)

// An offering is a compiled catalog. It is immutable.
type offering struct {
	set       *tool.Set
	resources []*resource
	byTool    map[string]any // *resource or *prompt by the name of its tool
}

func (o *offering) empty() bool { return o.set == nil }

// Offer replaces the catalog; nil removes it. Clients whose lists have changed are notified. If the catalog has errors, Offer
// joins and returns them, and the former catalog stays in force.
func (s *Server) Offer(c *Catalog) error {
	o := &offering{byTool: map[string]any{}}
	if c != nil && len(c.Resources)+len(c.Prompts) > 0 {
		var err error
		if o, err = compile(c); err != nil {
			return lathe.CodeInvalidConfig.Wrap("mcp: offer", err)
		}
	}
	s.offer.Store(o)
	for _, t := range s.everyTenant() {
		t.sync()
	}
	return nil
}

func compile(c *Catalog) (*offering, error) {
	o := &offering{byTool: map[string]any{}}
	if n := len(c.Resources) + len(c.Prompts); n > maxOffers {
		return nil, fmt.Errorf("%d resources and prompts, and at most %d are taken", n, maxOffers)
	}
	var errs []error
	var tools []lathe.Tool
	add := func(item lathe.Tool) {
		o.byTool[item.Spec().Name] = item
		tools = append(tools, item)
	}
	seen := map[string]string{}
	for i := range c.Resources {
		r, err := newResource(&c.Resources[i])
		if err == nil && seen[r.URI] != "" {
			err = fmt.Errorf("the uri %s is that of resource %s, too", r.URI, seen[r.URI])
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("resource %.80q: %w", c.Resources[i].Name, err))
			continue
		}
		seen[r.URI] = r.Name
		o.resources = append(o.resources, r)
		add(r)
	}
	for i := range c.Prompts {
		p, err := newPrompt(&c.Prompts[i], o)
		if err != nil {
			errs = append(errs, fmt.Errorf("prompt %.80q: %w", c.Prompts[i].Name, err))
			continue
		}
		add(p)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	var err error
	o.set, err = tool.NewSetWithin(lathe.Limits{MaxTools: maxOffers, MaxToolsBytes: 64 << 20}, tools...)
	return o, err
}

var goodName = lazy.Regexp(`^[a-zA-Z0-9_-]{1,50}$`)

func checkName(name string) error {
	if !goodName().MatchString(name) {
		return errors.New("a name has 1 to 50 of the characters a-z, A-Z, 0-9, _ and -")
	}
	return nil
}

var goodPart = lazy.Regexp(`\{([A-Za-z_][A-Za-z0-9_]{0,63})\}`)

// partsOf returns the names of the parts of a text, in order, each once.
func partsOf(text string) (names []string) {
	for _, m := range goodPart().FindAllStringSubmatch(text, -1) {
		if !slices.Contains(names, m[1]) {
			names = append(names, m[1])
		}
	}
	return names
}

// fill replaces each part {name} of the text whose name is in names by its value. Other parts are copied.
func fill(text string, names []string, values map[string]string) string {
	return goodPart().ReplaceAllStringFunc(text, func(part string) string {
		name := part[1 : len(part)-1]
		if !slices.Contains(names, name) {
			return part
		}
		return values[name]
	})
}

// newTemplate compiles a URI template to a pattern for the URIs that match it, and returns the names of its parts. Without parts, the
// pattern is nil.
func newTemplate(uri string) (*regexp.Regexp, []string, error) {
	names := partsOf(uri)
	literal := goodPart().ReplaceAllString(uri, "")
	switch {
	case strings.ContainsAny(literal, "{}"):
		return nil, nil, errors.New("a template's parts have the form {name}, of letters, digits and _")
	case len(names) > maxParts:
		return nil, nil, fmt.Errorf("a template has at most %d parts", maxParts)
	case len(names) == 0:
		return nil, nil, nil
	case len(names) < len(goodPart().FindAllString(uri, -1)):
		return nil, nil, errors.New("a part stands twice in the template")
	}
	pattern := "^"
	rest := uri
	for _, at := range goodPart().FindAllString(uri, -1) {
		before, after, _ := strings.Cut(rest, at)
		pattern += regexp.QuoteMeta(before) + "([^/?#]+)"
		rest = after
	}
	re, err := regexp.Compile(pattern + regexp.QuoteMeta(rest) + "$")
	return re, names, err
}

// checkURI returns an error unless uri is an absolute URI with a scheme and without spaces or control characters.
func checkURI(uri string) error {
	if len(uri) > maxURI {
		return fmt.Errorf("the uri has more than %d bytes", maxURI)
	}
	u, err := url.Parse(goodPart().ReplaceAllString(uri, "x"))
	if err != nil || u.Scheme == "" {
		return errors.New("the uri has no scheme: it looks like docs:///guide.md")
	}
	for _, c := range uri {
		if c <= ' ' || c == 0x7f || c == '\\' {
			return errors.New("the uri has a blank, a backslash or a control character: write them as %20 and the like")
		}
	}
	return nil
}

func checkMatch(patterns []string) error {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("the pattern %.80q is not one: * and ? stand for characters of one name", p)
		}
	}
	return nil
}

// specOf returns the tool definition by which policies and events refer to a resource or a prompt.
func specOf(prefix, name, description string, labels []string, schema json.RawMessage) lathe.ToolSpec {
	return lathe.ToolSpec{Name: prefix + name, Description: description, Schema: schema, Effect: lathe.ReadOnly,
		Allowlist: []string{"*"}, Labels: slices.Clone(labels), Origin: strings.TrimSuffix(prefix, "__")}
}
