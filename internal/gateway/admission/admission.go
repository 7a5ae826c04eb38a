package admission

import (
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/lathe-run/lathe/internal/gateway/problem"
)

// A Pool is a class of requests with a common bound on how many are served at once. A request counts until its handler returns.
type Pool int

const (
	Requests  Pool = iota // bounded by Limits.MaxConcurrent
	Watchers              // bounded by Limits.MaxWatchers: event streams, which are idle most of the time
	Sockets               // bounded by Limits.MaxWatchers, counted separately: WebSockets, each message of which is a request of its own
	Unbounded             // not bounded: metrics, which are served even if all else is refused, and workers, which have their own bound
	pools                 // the number of pools
)

// shares divides a pool: if there are several keys, each key may use at most the fraction 1/shares of it, so that one key cannot block the
// others.
const shares = 4

// A Limiter counts the requests of each key. It continues to count across a reload of the configuration. Its methods may be called from
// several goroutines at once.
type Limiter struct {
	now  func() time.Time
	most [pools]int

	mu    sync.Mutex
	taken [pools]int
	of    map[string]*keyUsage // usage by the name of the key
}

// maxIdleCallers bounds the entries of callers that an identity provider has identified and that have no request in progress. Beyond it,
// entries whose rate limit has fully recovered are removed.
const maxIdleCallers = 10_000

type keyUsage struct {
	profile string // profile of an identified caller; "": a key
	active  int
	taken   [pools]int
	tokens  float64 // requests that may be made at once now
	filled  time.Time
}

// A Caller is the holder of a key, or a caller that an identity provider has identified.
type Caller struct {
	Name, Profile string // Profile is "" for a key
	PerMinute     int    // requests; 0: no bound
	Concurrency   int    // requests at once; 0: no bound
}

// New returns a limiter that admits that many requests, and that many watchers and sockets, at once.
func New(now func() time.Time, requests, watchers int) *Limiter {
	return &Limiter{now: now, most: [pools]int{Requests: requests, Watchers: watchers, Sockets: watchers}, of: map[string]*keyUsage{}}
}

// setting returns the name of the setting that bounds the pool.
func (p Pool) setting() string {
	if p == Watchers || p == Sockets {
		return "serve.max_watchers"
	}
	return "serve.max_concurrent"
}

// Enter counts a request under the limits of its key and admits it to the pool. If a limit is reached, it returns a problem and counts
// nothing. The caller calls release once, when the request has ended. shared is set if several keys share the pool.
func (u *Limiter) Enter(k *Caller, at Pool, shared bool) (release func(), p *problem.Problem) {
	u.mu.Lock()
	defer u.mu.Unlock()
	c := u.entry(k)
	if at != Unbounded && u.taken[at] >= u.most[at] {
		return nil, problem.Overloaded(time.Second, "The gateway has %d requests of this kind at work, which is its limit (%s).", u.taken[at], at.setting())
	}
	share := max(1, u.most[at]/shares)
	if at != Unbounded && shared && c.taken[at] >= share {
		return nil, problem.RateLimited(time.Second, "This key has %d requests of this kind at work, which is its share of %s.", share, at.setting())
	}
	active := 1
	if at == Sockets { // its messages count as requests instead
		active = 0
	}
	if k.Concurrency > 0 && active > 0 && c.active >= k.Concurrency {
		return nil, problem.RateLimited(time.Second, "This key has %d requests at work already, which is its limit.", k.Concurrency)
	}
	if p := u.charge(k, c, 1); p != nil {
		return nil, p
	}
	c.active += active
	c.taken[at]++
	u.taken[at]++
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		c.active -= active
		c.taken[at]--
		u.taken[at]--
	}, nil
}

// entry returns the entry of a key or of an identified caller. u.mu is held.
func (u *Limiter) entry(k *Caller) *keyUsage {
	c := u.of[k.Name]
	if c == nil {
		if len(u.of) >= maxIdleCallers && k.Profile != "" {
			u.forgetIdle()
		}
		c = &keyUsage{profile: k.Profile, tokens: float64(k.PerMinute), filled: u.now()}
		u.of[k.Name] = c
	}
	return c
}

// forgetIdle removes entries of identified callers that carry no information: no request is in progress, and the rate limit has fully
// recovered. u.mu is held.
func (u *Limiter) forgetIdle() {
	now := u.now()
	maps.DeleteFunc(u.of, func(_ string, c *keyUsage) bool {
		return c.profile != "" && c.taken == [pools]int{} && c.active == 0 && now.Sub(c.filled) >= time.Minute
	})
}

// Active returns the number of requests in progress by the name of the key. A caller whose profile is a key is counted under both.
func (u *Limiter) Active() map[string]int {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := map[string]int{}
	for of, c := range u.of {
		if c.active == 0 {
			continue
		}
		n[of] += c.active
		if c.profile != "" && c.profile != of {
			n[c.profile] += c.active
		}
	}
	return n
}

// ShowRate sets the headers of OpenAI's API for the rate limit of a key: its requests per minute, how many of them it may make at once now,
// and the time until it may make all of them, as a duration such as 1m0.5s. A single request may be possible earlier, because requests are
// admitted at an even rate. A key without a limit gets no such headers.
func (u *Limiter) ShowRate(h http.Header, k *Caller) {
	most := float64(k.PerMinute)
	if most <= 0 {
		return
	}
	u.mu.Lock()
	c := u.entry(k)
	left := min(most, c.tokens+u.now().Sub(c.filled).Minutes()*most)
	u.mu.Unlock()
	h.Set("X-Ratelimit-Limit-Requests", strconv.Itoa(k.PerMinute))
	h.Set("X-Ratelimit-Remaining-Requests", strconv.Itoa(int(left+1e-9))) // 1e-9 offsets rounding errors in sums of fractions
	h.Set("X-Ratelimit-Reset-Requests", time.Duration((most-left)/most*float64(time.Minute)).Round(time.Millisecond).String())
}

// charge counts n requests against the rate of the key. If the rate does not allow all of them, it returns a problem and counts none. u.mu
// is held.
func (u *Limiter) charge(k *Caller, c *keyUsage, n int) *problem.Problem {
	most := float64(k.PerMinute)
	if most <= 0 {
		return nil
	}
	now := u.now()
	c.tokens = min(most, c.tokens+now.Sub(c.filled).Minutes()*most)
	c.filled = now
	if c.tokens < float64(n) {
		return problem.RateLimited(time.Duration((float64(n)-c.tokens)/most*float64(time.Minute)), "This key may make %d requests a minute.", k.PerMinute)
	}
	c.tokens -= float64(n)
	return nil
}

// Charge counts n further requests of the caller. If its rate does not allow all of them, it returns a problem and counts none.
func (u *Limiter) Charge(k *Caller, n int) *problem.Problem {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.charge(k, u.entry(k), n)
}
