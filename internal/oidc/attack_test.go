package oidc_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/lathe-run/lathe/internal/oidc"
	"github.com/lathe-run/lathe/internal/oidc/oidctest"
)

// encoded returns s as a part of a token.
func encoded(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// signRaw returns a token of any header and payload with a valid ES256 signature, so that what a verifier refuses of it is
// not the signature.
func signRaw(t *testing.T, private *ecdsa.PrivateKey, header, payload string) string {
	t.Helper()
	signed := encoded(header) + "." + encoded(payload)
	return signed + "." + encoded(string(es256(t, private, signed)))
}

func es256(t *testing.T, private *ecdsa.PrivateKey, signed string) []byte {
	t.Helper()
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, private, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
}

func newES256(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return private
}

// Each of these tokens has a valid signature of the issuer's key: the claims alone decide. Claims are those of a valid token
// with `iss`, `sub`, `aud` and `exp`, less those that the row names itself; the clock skew is 30 s.
func TestVerifyReadsClaimsInOneWay(t *testing.T) {
	t.Parallel()
	issuer, p, _ := setUp(t, nil)
	private := newES256(t)
	header := fmt.Sprintf(`{"alg":"ES256","kid":%q}`, issuer.Use(jose.ES256, private))
	for _, c := range []struct {
		claims string // members of the payload; ISS stands for the issuer
		less   string // the claims that are left out
		want   oidc.Kind
	}{
		{``, "", ""},
		// Types of times.
		{`"exp":"1800003600"`, "exp", oidc.Malformed},
		{`"exp":"never"`, "exp", oidc.Malformed},
		{`"exp":null`, "exp", oidc.Malformed},
		{`"exp":true`, "exp", oidc.Malformed},
		{`"exp":{}`, "exp", oidc.Malformed},
		{`"exp":[1800003600]`, "exp", oidc.Malformed},
		{`"exp":0`, "exp", oidc.Expired},
		{`"exp":-9223372036854775809`, "exp", oidc.Expired},
		{`"exp":-1e300`, "exp", oidc.Expired},
		{`"exp":1e400`, "exp", oidc.Malformed},
		{`"exp":1e300`, "exp", ""},
		{`"exp":9223372036854775807`, "exp", ""},
		{`"exp":9223372036854775808`, "exp", ""},
		{`"exp":18446744073709551616`, "exp", ""},
		{`"exp":1.8000036e9`, "exp", ""},
		{`"exp":1799999970`, "exp", oidc.Expired}, // the skew is over at this second, not after it
		{`"exp":1799999970.5`, "exp", ""},
		{`"exp":1799999971`, "exp", ""},
		{`"EXP":1800003600`, "exp", oidc.Malformed},
		{`"nbf":"1800000000"`, "", oidc.Malformed},
		{`"nbf":null`, "", oidc.Malformed},
		{`"nbf":[]`, "", oidc.Malformed},
		{`"nbf":1800000030`, "", ""},
		{`"nbf":1800000030.5`, "", oidc.NotYetValid},
		{`"nbf":1800000031`, "", oidc.NotYetValid}, // the skew is the configured one, not five minutes
		{`"nbf":1800000299`, "", oidc.NotYetValid},
		{`"nbf":1e300`, "", oidc.NotYetValid},
		{`"nbf":9223372036854775807`, "", oidc.NotYetValid},
		{`"nbf":18446744073709551616`, "", oidc.NotYetValid},
		{`"nbf":-1e300`, "", ""},
		{`"nbf":0`, "", ""},
		{`"NBF":1800009999`, "", ""},
		// A time of issue is no condition, whatever it is.
		{`"iat":1900000000`, "", ""},
		{`"iat":"now"`, "", ""},
		{`"iat":null`, "", ""},
		// Issuers are equal byte for byte.
		{`"iss":"ISS/"`, "iss", oidc.Issuer},
		{`"iss":["ISS"]`, "iss", oidc.Issuer},
		{`"iss":null`, "iss", oidc.Issuer},
		{`"iss":"ISS\u0000"`, "iss", oidc.Issuer},
		{`"Iss":"ISS"`, "iss", oidc.Issuer},
		{`"iſs":"ISS"`, "iss", oidc.Issuer}, // U+017F, whose upper case is S
		{`"iss":"https://evil.test","ISS":"ISS"`, "iss", oidc.Issuer},
		{`"ISS":"https://evil.test"`, "", ""},
		// Audiences.
		{`"aud":["x","lathe","y"]`, "aud", ""},
		{`"aud":["x","y"]`, "aud", oidc.Audience},
		{`"aud":[]`, "aud", oidc.Audience},
		{`"aud":""`, "aud", oidc.Audience},
		{`"aud":null`, "aud", oidc.Audience},
		{`"aud":{"lathe":true}`, "aud", oidc.Audience},
		{`"aud":["lathe",7]`, "aud", oidc.Audience},
		{`"aud":[["lathe"]]`, "aud", oidc.Audience},
		{`"aud":"lathe other-name"`, "aud", oidc.Audience},
		{`"aud":"LATHE"`, "aud", oidc.Audience},
		{`"aud":"x","Aud":"lathe"`, "aud", oidc.Audience},
		{`"Aud":"x"`, "", ""},
		// The party that a token was issued to is no condition of an access token.
		{`"azp":"someone","aud":["lathe","x"]`, "aud", ""},
		{`"azp":7`, "", ""},
		// Subjects.
		{`"sub":""`, "sub", oidc.Subject},
		{`"sub":null`, "sub", oidc.Subject},
		{`"sub":["ann"]`, "sub", oidc.Subject},
		{`"sub":"ann\u0000"`, "sub", oidc.Subject},
		{`"sub":"ann\u007f"`, "sub", oidc.Subject},
		{`"SUB":"bob"`, "", ""},
		// Members twice, at any depth, however they are written.
		{`"iss":"ISS"`, "", oidc.Malformed},
		{`"iss":"https://evil.test"`, "", oidc.Malformed},
		{`"exp":1900000000`, "", oidc.Malformed},
		{`"aud":"x"`, "", oidc.Malformed},
		{`"\u0073ub":"bob"`, "", oidc.Malformed},
		{`"realm_access":{"roles":["user"],"roles":["admin"]}`, "", oidc.Malformed},
		// Not JSON that every reader reads alike.
		{`"x":"\ud800"`, "", oidc.Malformed},
		{"\"x\":\"\xff\"", "", oidc.Malformed},
		{`"x":01`, "", oidc.Malformed},
		{`"x":NaN`, "", oidc.Malformed},
		{`"x":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "", oidc.Malformed},
		// Claims of other checks are of any type.
		{`"nonce":7`, "", ""},
		{`"at_hash":7`, "", ""},
		{`"_claim_names":{"groups":"src1"},"_claim_sources":{"src1":{"endpoint":"http://127.0.0.1:1/"}}`, "", ""},
		{`"_claim_names":7`, "", ""},
	} {
		payload := c.claims
		for _, claim := range []string{`"iss":"ISS"`, `"sub":"ann"`, `"aud":"lathe"`, `"exp":1800003600`} {
			if c.less == "" || !strings.HasPrefix(claim, `"`+c.less+`"`) {
				payload = strings.TrimPrefix(payload+","+claim, ",")
			}
		}
		tok, err := p.Verify(t.Context(), signRaw(t, private, header, "{"+strings.ReplaceAll(payload, "ISS", issuer.URL)+"}"))
		if oidc.KindOf(err) != c.want || (err == nil) != (c.want == "") {
			t.Errorf("%.80s: %v, want %q", c.claims, err, c.want)
		}
		if err == nil && (tok.Issuer != issuer.URL || tok.Subject != "ann") {
			t.Errorf("%.80s: %+v", c.claims, tok)
		}
		if err != nil && (strings.Contains(err.Error(), "evil") || strings.Contains(err.Error(), "18000")) {
			t.Errorf("%.80s: the error has the token's content in it: %v", c.claims, err)
		}
	}
	if n := issuer.Fetches(); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
}

// The claims are those of a valid token: the form, the header and the signature decide.
func TestVerifyRefusesHeadersAndForms(t *testing.T) {
	t.Parallel()
	issuer, p, _ := setUp(t, nil)
	private, other := newES256(t), newES256(t)
	id := issuer.Use(jose.ES256, private)
	payload := fmt.Sprintf(`{"iss":%q,"sub":"ann","aud":"lathe","exp":%d}`, issuer.URL, start+60)
	header := fmt.Sprintf(`{"alg":"ES256","kid":%q}`, id)
	valid := signRaw(t, private, header, payload)
	signed, signature := valid[:strings.LastIndexByte(valid, '.')], valid[strings.LastIndexByte(valid, '.')+1:]
	own := func(members string) string {
		return signRaw(t, private, `{"alg":"ES256","kid":"`+id+`"`+members+`}`, payload)
	}
	// unsigned is a token with a header of its own and the signature of another.
	unsigned := func(header string) string { return encoded(header) + "." + encoded(payload) + "." + signature }
	hmacUnder := func(key []byte) string {
		head := encoded(`{"alg":"HS256","kid":"`+id+`"}`) + "." + encoded(payload)
		mac := hmac.New(sha256.New, key)
		_, _ = io.WriteString(mac, head)
		return head + "." + encoded(string(mac.Sum(nil)))
	}
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(signed))
	asn1, err := private.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	protected, body, _ := strings.Cut(signed, ".")
	for name, c := range map[string]struct {
		token string
		want  oidc.Kind
	}{
		"valid":                  {valid, ""},
		"nothing":                {"", oidc.Malformed},
		"a key":                  {"sk-0123456789abcdef", oidc.Malformed},
		"two parts":              {signed, oidc.Malformed},
		"four parts":             {valid + ".x", oidc.Malformed},
		"padding within":         {signed + "=." + signature, oidc.Malformed},
		"a payload of no object": {signRaw(t, private, header, `["iss"]`), oidc.Malformed},
		"a payload of null":      {signRaw(t, private, header, `null`), oidc.Malformed},
		"a type":                 {own(`,"typ":"at+jwt"`), ""},
		"an unknown header":      {own(`,"x":1`), ""},
		"alg none":               {encoded(`{"alg":"none"}`) + "." + encoded(payload) + ".", oidc.Algorithm},
		"alg None":               {encoded(`{"alg":"None"}`) + "." + encoded(payload) + ".", oidc.Algorithm},
		"alg nONE, with a kid":   {unsigned(`{"alg":"nONE","kid":"` + id + `"}`), oidc.Algorithm},
		"alg empty":              {unsigned(`{"alg":"","kid":"` + id + `"}`), oidc.Algorithm},
		"alg null":               {unsigned(`{"alg":null,"kid":"` + id + `"}`), oidc.Algorithm},
		"alg a number":           {unsigned(`{"alg":256,"kid":"` + id + `"}`), oidc.Algorithm},
		"alg a list":             {unsigned(`{"alg":["ES256"],"kid":"` + id + `"}`), oidc.Algorithm},
		"alg with a blank":       {unsigned(`{"alg":"ES256 ","kid":"` + id + `"}`), oidc.Algorithm},
		"ALG":                    {unsigned(`{"ALG":"ES256","kid":"` + id + `"}`), oidc.Algorithm},
		"alg twice":              {signRaw(t, private, `{"alg":"none","alg":"ES256","kid":"`+id+`"}`, payload), oidc.Malformed},
		"kid twice":              {signRaw(t, private, `{"alg":"ES256","kid":"x","kid":"`+id+`"}`, payload), oidc.Malformed},
		"HS256, DER key":         {hmacUnder(der), oidc.Algorithm},
		"HS256, JWK":             {hmacUnder([]byte(jwk(t, private.Public()))), oidc.Algorithm},
		"HS256, no key":          {hmacUnder(nil), oidc.Algorithm},
		"ES384 under the key":    {unsigned(`{"alg":"ES384","kid":"` + id + `"}`), oidc.Algorithm},
		"PS256":                  {unsigned(`{"alg":"PS256","kid":"` + id + `"}`), oidc.Algorithm},
		"RS256 under the key":    {unsigned(`{"alg":"RS256","kid":"` + id + `"}`), oidc.UnknownKey},
		"EdDSA under the key":    {unsigned(`{"alg":"EdDSA","kid":"` + id + `"}`), oidc.UnknownKey},
		"unknown kid":            {signRaw(t, private, `{"alg":"ES256","kid":"other"}`, payload), oidc.UnknownKey},
		"kid a path":             {signRaw(t, private, `{"alg":"ES256","kid":"../../dev/null"}`, payload), oidc.UnknownKey},
		"kid a number":           {signRaw(t, private, `{"alg":"ES256","kid":1}`, payload), oidc.Malformed},
		"kid null":               {signRaw(t, private, `{"alg":"ES256","kid":null}`, payload), ""}, // as without one
		"no kid":                 {signRaw(t, private, `{"alg":"ES256"}`, payload), ""},
		"no kid, another's key":  {signRaw(t, other, `{"alg":"ES256"}`, payload), oidc.Signature},
		"another's key":          {signRaw(t, other, header, payload), oidc.Signature},
		"another's key, as jwk":  {signRaw(t, other, `{"alg":"ES256","jwk":`+jwk(t, other.Public())+`}`, payload), oidc.Signature},
		"jwk and kid":            {signRaw(t, other, `{"alg":"ES256","kid":"`+id+`","jwk":`+jwk(t, other.Public())+`}`, payload), oidc.Signature},
		"jwk and unknown kid":    {signRaw(t, other, `{"alg":"ES256","kid":"mine","jwk":`+jwk(t, other.Public())+`}`, payload), oidc.UnknownKey},
		"jwk a private key":      {signRaw(t, other, `{"alg":"ES256","jwk":`+jwk(t, other)+`}`, payload), oidc.Malformed},
		"the issuer's own jwk":   {own(`,"jwk":` + jwk(t, private.Public())), ""},
		"jku":                    {signRaw(t, other, `{"alg":"ES256","kid":"mine","jku":"`+issuer.URL+`/evil"}`, payload), oidc.UnknownKey},
		"x5u":                    {signRaw(t, other, `{"alg":"ES256","x5u":"`+issuer.URL+`/evil"}`, payload), oidc.Signature},
		"x5c":                    {signRaw(t, other, `{"alg":"ES256","x5c":["AAAA"]}`, payload), oidc.Malformed},
		"crit unknown":           {own(`,"crit":["x"],"x":1`), oidc.Signature},
		"crit exp":               {own(`,"crit":["exp"],"exp":1`), oidc.Signature},
		"crit empty":             {own(`,"crit":[]`), ""},
		"crit a text":            {own(`,"crit":"x"`), oidc.Signature},
		"b64 false":              {own(`,"crit":["b64"],"b64":false`), oidc.Signature},
		"b64 without crit":       {own(`,"b64":false`), oidc.Signature},
		"no header":              {"." + encoded(payload) + "." + signature, oidc.Algorithm},
		"header no JSON":         {unsigned(`{`), oidc.Malformed},
		"header a list":          {unsigned(`[]`), oidc.Malformed},
		"a blank before":         {" " + valid, oidc.Malformed},
		"a line end after":       {valid + "\n", ""},
		"a blank within":         {signed + ". " + signature, oidc.Malformed},
		"a NUL after":            {valid + "\x00", oidc.Malformed},
		"padding":                {valid + "==", oidc.Malformed},
		"five parts":             {valid + ".a.b", oidc.Malformed},
		"flattened JSON":         {`{"payload":"` + body + `","protected":"` + protected + `","signature":"` + signature + `"}`, oidc.Malformed},
		"general JSON":           {`{"payload":"` + body + `","signatures":[{"protected":"` + protected + `","signature":"` + signature + `"}]}`, oidc.Malformed},
		"JSON, unprotected alg":  {`{"payload":"` + body + `","header":{"alg":"ES256","kid":"` + id + `"},"signature":"` + signature + `"}`, oidc.Malformed},
		"no signature":           {signed + ".", oidc.Signature},
		"zeros for a signature":  {signed + "." + encoded(string(make([]byte, 64))), oidc.Signature},
		"a short signature":      {signed + "." + encoded(string(raw[:63])), oidc.Signature},
		"a long signature":       {signed + "." + encoded(string(append([]byte{0}, raw...))), oidc.Signature},
		"an ASN.1 signature":     {signed + "." + encoded(string(asn1)), oidc.Signature},
		"another's payload":      {protected + "." + encoded(strings.Replace(payload, "ann", "bob", 1)) + "." + signature, oidc.Signature},
		"no payload":             {protected + ".." + signature, oidc.Malformed},
		"too large, no token":    {strings.Repeat("a", oidc.MaxToken+1), oidc.TooLarge}, // before it is parsed
		"too large, many points": {strings.Repeat(".", oidc.MaxToken+1), oidc.TooLarge},
		"too large, signed":      {own(`,"x":"` + strings.Repeat("x", oidc.MaxToken) + `"`), oidc.TooLarge},
		"the most, no token":     {strings.Repeat("a", oidc.MaxToken), oidc.Malformed},
		"the most, points":       {strings.Repeat(".", oidc.MaxToken), oidc.Malformed},
	} {
		_, err := p.Verify(t.Context(), c.token)
		if oidc.KindOf(err) != c.want || (err == nil) != (c.want == "") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if n := issuer.Fetches(); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
}

// Old tokens of Google have a second name of the issuer, which is refused as for any other issuer.
func TestVerifyAcceptsOneNameOfAnIssuer(t *testing.T) {
	t.Parallel()
	private := newES256(t)
	keys := &http.Client{Transport: keysOf(`{"keys":[` + jwk(t, private.Public()) + `]}`)}
	p, err := oidc.New(&oidc.Options{Issuer: "https://accounts.google.com", Audience: []string{"lathe"}, KeysURL: "https://www.googleapis.com/oauth2/v3/certs", Client: keys})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for issuer, want := range map[string]oidc.Kind{"https://accounts.google.com": "", "accounts.google.com": oidc.Issuer} {
		token := oidctest.SignWith(t, jose.ES256, private, "", map[string]any{"iss": issuer, "sub": "ann", "aud": "lathe", "exp": 253402300799})
		if _, err := p.Verify(t.Context(), token); oidc.KindOf(err) != want || (err == nil) != (want == "") {
			t.Errorf("%s: %v, want %q", issuer, err, want)
		}
	}
}

// keysOf is an issuer's server that answers every request with a document.
type keysOf string

// RoundTrip implements [http.RoundTripper].
func (k keysOf) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Status: strconv.Itoa(http.StatusOK), Body: io.NopCloser(strings.NewReader(string(k))), Request: r}, nil
}

// The token of a sign-in is for the client, and of the sign-in that the browser has begun.
func TestExchangeRefusesTokensOfOthers(t *testing.T) {
	t.Parallel()
	issuer, p, _ := setUp(t, nil)
	client, login := &oidc.Client{ID: "console"}, &oidc.Login{Nonce: "n-1", Verifier: "v", Redirect: "https://lathe.example/callback"}
	issuer.Handle("/token", func(w http.ResponseWriter, r *http.Request) { // the code is the token
		_, _ = fmt.Fprintf(w, `{"token_type":"Bearer","access_token":"a","id_token":%q}`, r.PostFormValue("code"))
	})
	for name, c := range map[string]struct {
		changes map[string]any
		want    oidc.Kind
	}{
		"valid":                       {nil, ""},
		"the client's azp":            {map[string]any{"azp": "console"}, ""},
		"several audiences":           {map[string]any{"aud": []string{"x", "console"}}, ""},
		"another azp":                 {map[string]any{"azp": "x", "aud": []string{"x", "console"}}, oidc.Audience},
		"azp null":                    {map[string]any{"azp": []any(nil)}, oidc.Audience},
		"azp a list":                  {map[string]any{"azp": []string{"console"}}, oidc.Audience},
		"the gateway's audience":      {map[string]any{"aud": "lathe"}, oidc.Audience},
		"no audience":                 {map[string]any{"aud": nil}, oidc.Audience},
		"another nonce":               {map[string]any{"nonce": "n-2"}, oidc.Code},
		"no nonce":                    {map[string]any{"nonce": nil}, oidc.Code},
		"an empty nonce":              {map[string]any{"nonce": ""}, oidc.Code},
		"a list of nonces":            {map[string]any{"nonce": []string{"n-1"}}, oidc.Code},
		"a nonce in another case":     {map[string]any{"nonce": nil, "Nonce": "n-1"}, oidc.Code},
		"expired":                     {map[string]any{"exp": start - 30}, oidc.Expired},
		"another issuer":              {map[string]any{"iss": "https://evil.test"}, oidc.Issuer},
		"a subject with a line break": {map[string]any{"sub": "ann\nbob"}, oidc.Subject},
	} {
		base := map[string]any{"aud": "console", "nonce": "n-1"}
		maps.Copy(base, c.changes)
		if _, err := p.Exchange(t.Context(), client, login, issuer.Sign(claims(issuer, base))); oidc.KindOf(err) != c.want || (err == nil) != (c.want == "") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for name, c := range map[string]struct {
		token string
		want  oidc.Kind
	}{"none": {"", oidc.Malformed}, "of no signature": {encoded(`{"alg":"none"}`) + "." + encoded(`{}`) + ".", oidc.Algorithm}} {
		if _, err := p.Exchange(t.Context(), client, login, c.token); oidc.KindOf(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
