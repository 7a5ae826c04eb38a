package secret_test

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe/secret"
)

// value stands for what must not be shown.
const value = "c4n4ry-V4lue"

// Values of what is named as a secret are replaced, in whatever spelling. Those that only a sentence or a file names are replaced in prose alone.
func TestNamedSecretsAreReplaced(t *testing.T) {
	t.Parallel()
	const r = secret.Redacted
	for in, want := range map[string]struct{ scrub, prose string }{
		"KEY: -----BEGIN RSA PRIVATE KEY-----\nMII" + value + "\n-----END RSA PRIVATE KEY-----\nPORT=1": {"KEY: " + r + "\nPORT=1", ""},
		"-----BEGIN PRIVATE KEY-----\nMII" + value + " that is cut":                                     {r, ""},
		"SECRET_KEY=" + value:                                                              {"SECRET_KEY=" + r, ""},
		"export DB_PASS=" + value + " PORT=5432":                                           {"export DB_PASS=" + r + " PORT=5432", ""},
		"DBPASS=" + value:                                                                  {"DBPASS=" + r, ""},
		"dbPass: " + value:                                                                 {"", "dbPass: " + r},
		"uid=sa;pwd=" + value + ";db=x":                                                    {"uid=sa;pwd=" + r + ";db=x", ""},
		"SECRET_KEY_BASE = " + value:                                                       {"SECRET_KEY_BASE = " + r, ""},
		"API_KEY_2=" + value + "&page=1":                                                   {"API_KEY_2=" + r, ""},
		"api key: " + value:                                                                {"", "api key: " + r},
		"The API-Key is " + value + ".":                                                    {"", "The API-Key is " + r + "."},
		"the secret access key: " + value + ", then":                                       {"", "the secret access key: " + r + ", then"},
		"**Password:** " + value:                                                           {"", "**Password:** " + r},
		"The password is now " + value + "; go on":                                         {"", "The password is now " + r + "; go on"},
		"the pass phrase was set to " + value:                                              {"", "the pass phrase was set to " + r},
		"password:\n  " + value + "\nuser: x":                                              {"", "password:\n  " + r + "\nuser: x"},
		"userPassword := `" + value + " x`":                                                {"", "userPassword := `" + r + "`"},
		`{"apiKey": "` + value + ` x", "n": 1}`:                                            {`{"apiKey": "` + r + `", "n": 1}`, ""},
		`{'client_secret':'` + value + `'}`:                                                {`{'client_secret':'` + r + `'}`, ""},
		`os.environ["X_TOKEN"] = "` + value + `"`:                                          {`os.environ["X_TOKEN"] = "` + r + `"`, ""},
		`"password": "a\"` + value + `", "n": 1`:                                           {`"password": "` + r + `", "n": 1`, ""},
		`"password": "` + value + `\\", "n": 1`:                                            {`"password": "` + r + `", "n": 1`, ""},
		`"secret": "` + value + ` that is cut`:                                             {`"secret": "` + r, ""},
		`{"a":"{\"password\":\"` + value + `\",\"n\":1}"}`:                                 {`{"a":"{\"password\":\"` + r + `\",\"n\":1}"}`, ""},
		`{"a":"{\"token\":\"x\\\"` + value + `\"}","n":1}`:                                 {`{"a":"{\"token\":\"` + r + `\"}","n":1}`, ""},
		`"{\"b\":\"{\\\"pwd\\\":\\\"` + value + `\\\"}\"}"`:                                {`"{\"b\":\"{\\\"pwd\\\":\\\"` + r + `\\\"}\"}"`, ""},
		`{"secrets": ["a]", {"b": "` + value + `"}], "n": 1}`:                              {`{"secrets": ` + r + `, "n": 1}`, ""},
		`"credentials":{"user":"x","key":"` + value:                                        {`"credentials":` + r, ""},
		"Authorization: Token " + value + " was sent":                                      {"Authorization: Token " + r + " was sent", ""},
		"Authorization: " + value + "\nAccept: x":                                          {"Authorization: " + r + "\nAccept: x", ""},
		"Authorization: Custom " + value + " was sent":                                     {"Authorization: " + r + " was sent", ""},
		"curl -H 'Proxy-Authorization: Basic " + value + "' x":                             {"curl -H 'Proxy-Authorization: Basic " + r + "' x", ""},
		`Authorization: Digest username="a b", response="` + value + `"` + "\n":            {"Authorization: Digest " + r + `"` + "\n", ""},
		"Authorization: AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host, Sig=" + value: {"Authorization: AWS4-HMAC-SHA256 " + r, ""},
		"Cookie: a=b; sid=" + value + "\r\nHost: x":                                        {"Cookie: " + r + "\r\nHost: x", ""},
		"Set-Cookie: sid=" + value + "; Path=/; HttpOnly":                                  {"Set-Cookie: " + r, ""},
		`-H "X-Api-Key: ` + value + `" -v`:                                                 {`-H "X-Api-Key: ` + r + `" -v`, ""},
		"PRIVATE-TOKEN: " + value:                                                          {"PRIVATE-TOKEN: " + r, ""},
		"login --db-password " + value + " --user x":                                       {"login --db-password " + r + " --user x", ""},
		"login --token=" + value:                                                           {"login --token=" + r, ""},
		"https://user:" + value + "@host.example/x?y=z@w":                                  {"https://" + r + "@host.example/x?y=z@w", ""},
		"postgres://u:p@" + value + "@db:5432/x":                                           {"postgres://" + r + "@db:5432/x", ""},
		`"https:\/\/` + value + `@host\/x"`:                                                {`"https:\/\/` + r + `@host\/x"`, ""},
		"https://host/x?access_token=" + value + `": no such host`:                         {"https://host/x?access_token=" + r + `": no such host`, ""},
		"write to " + value + "@mail.example.org":                                          {"", "write to " + r},
		"tokens: a b, access_tokens=" + value:                                              {"tokens: a b, access_tokens=" + r, ""},
	} {
		for _, c := range []struct {
			name, want string
			scrub      func(string) string
		}{{"Scrub", want.scrub, func(s string) string { return secret.Scrub(s) }}, {"ScrubProse", want.prose, secret.ScrubProse}} {
			if c.want == "" {
				if c.name == "Scrub" {
					c.want = in
				} else {
					c.want = want.scrub
				}
			}
			if got := c.scrub(in); got != c.want {
				t.Errorf("%s(%q):\n got %q\nwant %q", c.name, in, got, c.want)
			} else if again := c.scrub(got); again != got {
				t.Errorf("%s(%q), again: %q", c.name, got, again)
			}
		}
	}
}

// Text that names no secret, or a secret without its value, stays as it is.
func TestHarmlessTextStays(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"", "the user has a token limit", "a pass: 12, fail: 3", "bypass: on, compass: north", "PASS: all tests", "the author: Ann", "authentication: basic",
		`{"prompt_tokens": 12, "max_tokens": 4096}`, "max_tokens=4096", "tokens: about 500 of 1,000", "x-ratelimit-remaining-tokens: 1_000",
		`{"token_type":"bearer"}`, "token_count: 3", "tokenizer: cl100k", "secretary: Ann", "passenger: Bob", "password_policy: strict", "secret_name=db",
		"key: value", "primary key: id", "monkey: x", "keyboard=us", "Unexpected token } in JSON at 7", "the token is expired", "API key: required",
		"password: string", `"password": ""`, `"token": null, "n": 1`, "func login(password string)", "login with --token", "Incorrect API key provided",
		"https://host.example:8080/a@b?c=d@e", "http://[::1]:80/", "see https://host/x, then mail@", "git log -- secret", "its cookie; then", "12:30 is fine: yes",
	} {
		if got := secret.ScrubProse(in); got != in {
			t.Errorf("ScrubProse(%q): %q", in, got)
		}
		if got := secret.Scrub(in); got != in {
			t.Errorf("Scrub(%q): %q", in, got)
		}
	}
	for _, in := range []string{ // of errors
		"invalid_token: The token has expired", "Unexpected token: ;", "missing_api_key: You gave none", "the password is wrong", "token: expected a name", "ann@example.org is unknown",
		`"token": Field required`, `parsing "token": unexpected end of JSON input`, `"invalid_api_key": You can find yours`, `expected "api_key=" in the header, got none`,
		"authorization: header is malformed", "Authorization: not supplied", "cookie: the session has expired", "Set-Cookie: Expected a value.", "x-api-key: header required",
		"authorization: bearer token is missing", "Authorization: is unsupported, use another scheme", "401: Proxy-Authorization: failed", "use Basic authentication", "a Bearer challenge",
		`header 'Authorization: ' is missing; don't send it`, `{"api_key":"required"}`, `"max_tokens": -1`, "tokens = 9001/8192", `"max_tokens": "12"`, "API_KEY=\nHOST=db",
	} {
		if got := secret.Scrub(in); got != in {
			t.Errorf("Scrub(%q): %q", in, got)
		}
	}
}

// A word that explains nothing is a value, whatever stands beside it.
func TestValuesBesideWordsAreReplaced(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"Authorization: header " + value, "Authorization: " + value + " header", "authorization: swordfish", "Authorization: Custom swordfish", "cookie: swordfish",
		"Cookie: session; sid=" + value, "Cookie: the, sid=" + value, "x-api-key: swordfish", "Bearer authentication-" + value, "Authorization: Bearer\t" + value + " is bad"} {
		if got := secret.Scrub(in); strings.Contains(got, value) || strings.Contains(got, "swordfish") {
			t.Errorf("Scrub(%q): %q", in, got)
		}
	}
}

// Whatever stands before it, an assigned value is not shown, and what is scrubbed is scrubbed.
func FuzzScrubProse(f *testing.F) {
	for _, s := range []string{"", "Authorization: Bearer ", `{"password":"a\"`, `{\"token\":\"`, "Cookie: a=b; ", "https://u:p@h ", "secrets: [", "api key is ", "--token ", "tokens=1 ", "token: tr", "pass: "} {
		f.Add(s, " ")
	}
	f.Fuzz(func(t *testing.T, before, behind string) {
		const planted = "c4n4ryV4lue"
		for _, form := range []string{"\nSECRET_KEY=%", "\n\"apiKey\": \"%\"", "\nCookie: a=%", "\nhttps://user:%@host/", "\n{\\\"token\\\":\\\"%\\\"}", "\nAuthorization: Token %", "\nlogin --password %"} {
			text := before + strings.Replace(form, "%", planted, 1) + "\n" + behind
			for name, scrub := range map[string]func(string) string{"Scrub": func(s string) string { return secret.Scrub(s) }, "ScrubProse": secret.ScrubProse} {
				got := scrub(text)
				if strings.Count(got, planted) > strings.Count(before+"\n"+behind, planted) {
					t.Errorf("%s(%q) shows the value: %q", name, text, got)
				}
				if again := scrub(got); again != got {
					t.Errorf("%s(%q), again: %q", name, got, again)
				}
			}
		}
	})
}

// BenchmarkScrubProse is the time for each byte, which must not depend on their number.
func BenchmarkScrubProse(b *testing.B) {
	for name, s := range map[string]string{"text": "The model reads a file: it has lines. ", "names": "token ", "quotes": `password="a`, "lists": "secrets: [", "values": "token=)", "headers": `cookie: ;"`,
		"urls": "://a", "slashes": `token=\`, "blanks": "token \n\n\n", "signs": ": = ", "closed": "token]]]"} {
		for _, n := range []int{1 << 14, 1 << 17} {
			text := strings.Repeat(s, n/len(s))
			b.Run(name+"/"+map[bool]string{true: "long", false: "short"}[n > 1<<14], func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					secret.ScrubProse(text)
				}
			})
		}
	}
}
