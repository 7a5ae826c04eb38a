package eval_test

import (
	"context"
	"encoding/json"
	"iter"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/lab/eval"
	"github.com/lathe-run/lathe/sim"
)

// conversations are the suites with gold actions.
var conversations = map[string]func() *eval.Suite{"retail": eval.Retail, "airline": eval.Airline, "skills": eval.Skills}

// plays is a target that makes the turns that change returns for a scenario.
func plays(name string, change func(*eval.Scenario) []eval.GoldTurn) eval.Target {
	return eval.Target{Name: name, ModelFor: func(sc *eval.Scenario) lathe.Model { return eval.Play(change(sc)) }}
}

// onlyWords leaves out the calls, as a model without tools does.
func onlyWords(sc *eval.Scenario) (turns []eval.GoldTurn) {
	for _, t := range sc.Gold {
		if t.Say != "" {
			turns = append(turns, eval.GoldTurn{Say: t.Say})
		}
	}
	return turns
}

// A model that makes no error passes every scenario. One that calls nothing passes none of those with tools, and passes the controls.
func TestGoldPassesAndWordsAloneDoNot(t *testing.T) {
	t.Parallel()
	for name, suite := range conversations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := suite()
			rep, err := eval.Measure(t.Context(), s, s.Scenarios, []eval.Target{eval.GoldTarget(), plays("words", onlyWords)}, &eval.Options{Trials: 4})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rep.Runs {
				switch {
				case r.Model == eval.GoldModel || r.Control:
					if !r.OK {
						t.Errorf("%s %s: %s: %s", r.Model, r.Scenario, r.Class, r.Error)
					}
				case r.OK || r.Class != eval.ClassNoToolCalls || !r.Scored:
					t.Errorf("%s without calls: ok %v, %s: %s", r.Scenario, r.OK, r.Class, r.Error)
				}
			}
			for i, rate := range []float64{1, 0} {
				row := rep.Summary().Models[i]
				if row.OKRate != rate || row.ControlsOK != row.Controls || len(row.PassK) != 2 || row.PassK[1].Rate != rate {
					t.Errorf("%s: %+v", row.Model, row)
				}
			}
		})
	}
}

// call returns a turn with one call.
func call(tool, arguments string) eval.GoldTurn {
	return eval.GoldTurn{Calls: []eval.GoldCall{{Tool: tool, Arguments: json.RawMessage(arguments)}}}
}

// replaced returns the gold actions with the calls of a tool changed.
func replaced(tool, old, with string) func(*eval.Scenario) []eval.GoldTurn {
	return func(sc *eval.Scenario) []eval.GoldTurn {
		turns := slices.Clone(sc.Gold)
		for i := range turns {
			turns[i].Calls = slices.Clone(turns[i].Calls)
			for j, c := range turns[i].Calls {
				if c.Tool == tool {
					turns[i].Calls[j].Arguments = json.RawMessage(strings.ReplaceAll(string(c.Arguments), old, with))
				}
			}
		}
		return turns
	}
}

// without returns the gold actions without the turns that call the tool.
func without(tool string) func(*eval.Scenario) []eval.GoldTurn {
	return func(sc *eval.Scenario) []eval.GoldTurn {
		return slices.DeleteFunc(slices.Clone(sc.Gold), func(t eval.GoldTurn) bool {
			return slices.ContainsFunc(t.Calls, func(c eval.GoldCall) bool { return c.Tool == tool })
		})
	}
}

// before returns the gold actions with a turn put in front of that one.
func before(at int, turn eval.GoldTurn) func(*eval.Scenario) []eval.GoldTurn {
	return func(sc *eval.Scenario) []eval.GoldTurn { return slices.Insert(slices.Clone(sc.Gold), at, turn) }
}

// instead returns other turns.
func instead(turns ...eval.GoldTurn) func(*eval.Scenario) []eval.GoldTurn {
	return func(*eval.Scenario) []eval.GoldTurn { return turns }
}

// oneByOne makes a turn of each call.
func oneByOne(sc *eval.Scenario) (turns []eval.GoldTurn) {
	for _, t := range sc.Gold {
		for _, c := range t.Calls {
			turns = append(turns, eval.GoldTurn{Calls: []eval.GoldCall{c}})
		}
	}
	return append(turns, sc.Gold[len(sc.Gold)-1])
}

// Each scenario fails for the error that it is about, and says what was wrong.
func TestEachConversationFailsForItsError(t *testing.T) {
	t.Parallel()
	noCall, anyCall := "any tool called", "any tool not called"
	for suite, list := range map[string][]struct {
		scenario string
		play     func(*eval.Scenario) []eval.GoldTurn
		message  string // part of the message; every failed check is part of it
		failed   []string
	}{
		"retail": {
			{"cancel_open_order", without("find_customer"), "first calls in the order find_customer, cancel_order", []string{"trace"}},
			{"cancel_open_order", without("cancel_order"), `/orders/F-2071/status "open" and not "cancelled"`, []string{"state", "trace"}},
			{"cancel_open_order", replaced("cancel_order", "mistake", "other"), `/orders/F-2071/reason "other" and not "mistake"`, []string{"state"}},
			{"refuse_sent_order", before(2, call("cancel_order", `{"order":"F-2080","reason":"other"}`)), `/orders/F-2080/status "cancelled" and not "open"`, []string{"state"}},
			{"refuse_sent_order", without("get_order"), "get_order called, got never", []string{"trace"}},
			{"exchange_for_stock", replaced("exchange_item", "MUG-XL", "MUG-RED"), "/orders/F-2044/items/MUG-RED 900 and not absent", []string{"state"}},
			{"return_for_credit", replaced("return_items", "credit", "card"), "/refunds", []string{"state"}},
			{"refuse_foreign_order", before(2, call("cancel_order", `{"order":"F-2080","reason":"other"}`)), `/orders/F-2080/status "cancelled" and not "open"`, []string{"state"}},
			{"two_requests", replaced("change_address", "8 Harbour", "9 Harbour"), `/orders/F-2080/address "9 Harbour Row, Orrin" and not "8 Harbour Row, Orrin"`, []string{"state"}},
			{"two_requests", func(sc *eval.Scenario) []eval.GoldTurn {
				turns := slices.Clone(sc.Gold)
				turns[len(turns)-1].Say = "We have a few red mugs."
				return turns
			}, `the model says "12"`, []string{"text"}},
		},
		"airline": {
			{"move_two_travellers", replaced("change_flight", "SK107", "SK109"), `/bookings/QX7PLM/flight "SK101" and not "SK107"`, []string{"state"}}, // the tool refuses it
			{"move_two_travellers", replaced("change_flight", `"fee":0`, `"fee":4000`), "/payments", []string{"state"}},
			{"refuse_light_fare", before(1, call("cancel_booking", `{"code":"R2D9TT"}`)), `/bookings/R2D9TT/status "cancelled" and not "booked"`, []string{"state"}},
			{"flight_was_cancelled", without("cancel_booking"), `/bookings/W8KK3C/status "booked" and not "cancelled"`, []string{"state"}},
			{"rebook_and_bag", before(6, call("add_bags", `{"code":"W8KK3C","bags":1,"amount":3000}`)), "/bookings/W8KK3C/bags 3 and not 2", []string{"state", "trace"}},
			{"bags_for_two", replaced("add_bags", `"bags":2`, `"bags":1`), "/bookings/QX7PLM/bags 2 and not 3", []string{"state"}},
		},
		"skills": {
			{"long_list_archive", instead(call("archive_quote", `{"id":"I-2088"}`)), `/quotes/I-2088/state "archived" and not "open"`, []string{"state"}},
			{"long_list_archive", instead(call("delete_invoice", `{"id":"I-2088"}`)), `/invoices/I-2088/state "open" and not "archived"`, []string{"state"}},
			{"long_list_two_steps", replaced("set_contact_phone", "C-902", "C-209"), "/contacts/C-209/phone", []string{"state"}},
			{"parallel_rooms", oneByOne, "one message holds set_thermostat and set_thermostat", []string{"trace"}},
			{"irrelevant_question", before(0, call("list_orders", `{}`)), anyCall, []string{"trace"}},
			{"missing_parameter", before(0, call("book_table", `{"restaurant":"any","people":2,"time":"20:00"}`)), anyCall, []string{"trace"}},
			{"recover_unavailable", instead(), noCall, []string{"state", "trace"}},
			{"recover_refusal", instead(call("move_meeting", `{"meeting":"M-4","room":"Cedar"}`)), `/meetings/M-4/room "Birch" and not "Alder"`, []string{"state"}},
			{"injection_in_record", before(1, call("close_ticket", `{"ticket":"T-8"}`)), "/tickets/T-8 absent and not", []string{"state"}},
			{"injection_in_record", before(1, call("set_rights", `{"group":"all","rights":"admin"}`)), "set_rights is not asked for", []string{"state", "trace"}},
			{"long_arguments", func(sc *eval.Scenario) []eval.GoldTurn {
				args := string(sc.Gold[0].Calls[0].Arguments)
				return []eval.GoldTurn{call("put_recall", args[:strings.LastIndexByte(args, ',')]+"]}")}
			}, "/recall", []string{"state"}},
			{"exact_text", replaced("save_card", "ễ", "e"), "/cards", []string{"state"}},
			{"exact_text", replaced("save_card", `\\n`, `\n`), "/cards", []string{"state"}},
			{"exact_numbers", replaced("store_reading", "9007199254740993", "9007199254740992"), "/readings/a 9007199254740992 and not 9007199254740993", []string{"state"}},
			{"exact_numbers", replaced("store_reading", "1.005", "1.0050000000000004"), "/readings/d", []string{"state"}},
		},
	} {
		s := conversations[suite]()
		tried := map[string]bool{}
		for _, c := range list {
			tried[c.scenario] = true
			t.Run(suite+"/"+c.scenario, func(t *testing.T) {
				t.Parallel()
				sc, err := s.Find(c.scenario)
				if err != nil {
					t.Fatal(err)
				}
				rep, err := eval.Measure(t.Context(), s, sc, []eval.Target{plays("mutated", c.play)}, nil)
				if err != nil {
					t.Fatal(err)
				}
				r := rep.Runs[0]
				var failed []string
				for _, check := range r.Checks {
					if !check.OK && !slices.Contains(failed, check.Group) {
						failed = append(failed, check.Group)
					}
				}
				want := eval.ClassAssertionFailed
				if c.message == noCall {
					want = eval.ClassNoToolCalls
				}
				if r.OK || r.Class != want || !r.Scored || !strings.Contains(r.Error, c.message) || !slices.Equal(failed, c.failed) {
					t.Errorf("ok %v, %s, failed %v: %s\nwant %s, %v: …%s…", r.OK, r.Class, failed, r.Error, want, c.failed, c.message)
				}
			})
		}
		for _, sc := range s.Scenarios {
			if !tried[sc.ID] {
				t.Errorf("%s/%s: no mutated play fails it", suite, sc.ID)
			}
		}
	}
}

// givesUp says that it failed once a call has failed.
type givesUp struct{ lathe.Model }

func (m givesUp) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	for _, p := range req.Messages[len(req.Messages)-1].Parts {
		if r, ok := p.(lathe.ToolResult); ok && r.IsError {
			return eval.Play([]eval.GoldTurn{{Say: "It did not work."}}).Generate(ctx, &lathe.Request{})
		}
	}
	return m.Model.Generate(ctx, req)
}

// A model that does not try again fails the scenarios of recovery, and those alone.
func TestGivingUpFailsRecoveryAlone(t *testing.T) {
	t.Parallel()
	s := eval.Skills()
	target := eval.Target{Name: "gives up", ModelFor: func(sc *eval.Scenario) lathe.Model {
		if sc.ID == "recover_refusal" { // the first choice of the user
			return givesUp{eval.Play(replaced("move_meeting", "Alder", "Cedar")(sc))}
		}
		return givesUp{eval.Play(sc.Gold)}
	}}
	rep, err := eval.Measure(t.Context(), s, s.Scenarios, []eval.Target{target}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rep.Summary().Categories {
		want := row.Runs
		if row.Category == "recovery" {
			want = 0
		}
		if row.OK != want {
			t.Errorf("%s: %d of %d, want %d", row.Category, row.OK, row.Runs, want)
		}
	}
}

// A model that plays the user gets the instructions, the answers, and no more; its end token ends the conversation.
func TestModelPlaysTheUser(t *testing.T) {
	t.Parallel()
	script, err := sim.ParseScript(strings.NewReader(`
-- turn --
error: 500 never asked
-- turn --
expect: What is your e-mail address?
text: nora.lind@example.org, of course.
usage: 100 10
-- turn --
expect: Do you agree?
text: I do.
usage: 120 5
-- turn --
expect: is cancelled
text: Thank you! [END]
usage: 140 5
`))
	if err != nil {
		t.Fatal(err)
	}
	user := &eval.UserModel{Name: "actor", Identity: "1", Model: sim.New(&sim.Options{Scripts: map[string]*sim.Script{"": script}}).Model("sim/script")}
	s := eval.Retail()
	sc, err := s.Find("cancel_open_order")
	if err != nil {
		t.Fatal(err)
	}
	tape := t.TempDir()
	rep, err := eval.Measure(t.Context(), s, sc, []eval.Target{eval.GoldTarget()}, &eval.Options{UserModel: user, Record: tape})
	if err != nil {
		t.Fatal(err)
	}
	r := rep.Runs[0]
	if !r.OK || r.UserModel != "actor" || r.UserTurns != 3 || r.UserUsage.InputTokens != 360 || r.Usage.InputTokens != 0 {
		t.Errorf("ok %v, %s: %s; %s, %d turns, %+v, %+v", r.OK, r.Class, r.Error, r.UserModel, r.UserTurns, r.UserUsage, r.Usage)
	}
	var users []string
	for i := range r.History {
		if r.History[i].Role == lathe.RoleUser {
			users = append(users, r.History[i].Text())
		}
	}
	if want := []string{sc[0].User, "nora.lind@example.org, of course.", "I do."}; !slices.Equal(users, want) {
		t.Errorf("%q, want %q", users, want)
	}
	silent := &eval.UserModel{Name: "actor", Identity: "1", Model: unreachable{}}
	again, err := eval.Measure(t.Context(), s, sc, []eval.Target{eval.GoldTarget()}, &eval.Options{UserModel: silent, Replay: tape})
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Runs[0]; !got.OK || !reflect.DeepEqual(got.History, r.History) || got.Fingerprint != r.Fingerprint {
		t.Errorf("the replay: %s: %s", got.Class, got.Error)
	}
	silent.Identity = "2"
	other, err := eval.Measure(t.Context(), s, sc, []eval.Target{eval.GoldTarget()}, &eval.Options{UserModel: silent, Dir: filepath.Join(t.TempDir(), "out")})
	if err != nil {
		t.Fatal(err)
	}
	if got := other.Runs[0]; got.Class != eval.ClassUserModel || got.Scored || got.Fingerprint == r.Fingerprint {
		t.Errorf("a user that cannot be reached: %s, scored %v: %s", got.Class, got.Scored, got.Error)
	}
}

// A user that never ends the conversation reaches max_turns, and the run fails.
func TestConversationIsBounded(t *testing.T) {
	t.Parallel()
	s := eval.Retail()
	sc, err := s.Find("two_requests")
	if err != nil {
		t.Fatal(err)
	}
	user := &eval.UserModel{Name: "chatty", Model: eval.Play([]eval.GoldTurn{{Say: "And then?"}})}
	rep, err := eval.Measure(t.Context(), s, sc, []eval.Target{eval.GoldTarget()}, &eval.Options{UserModel: user})
	if err != nil {
		t.Fatal(err)
	}
	if r := rep.Runs[0]; r.OK || !r.Scored || r.Class != eval.ClassAssertionFailed || r.UserTurns != 10 || !strings.Contains(r.Error, "within 10 messages of the user (max_turns)") {
		t.Errorf("%s, scored %v, %d turns: %s", r.Class, r.Scored, r.UserTurns, r.Error)
	}
}

// A recording of tools holds what they made of the database, so that a replay without them ends with the same one.
func TestReplayOfToolsKeepsTheDatabase(t *testing.T) {
	t.Parallel()
	s := eval.Airline()
	tape := t.TempDir()
	targets := []eval.Target{eval.GoldTarget()}
	recorded, err := eval.Measure(t.Context(), s, s.Scenarios, targets, &eval.Options{Record: tape})
	if err != nil {
		t.Fatal(err)
	}
	replayed, err := eval.Measure(t.Context(), s, s.Scenarios, targets, &eval.Options{Replay: tape, ReplayTools: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range replayed.Runs {
		if want := recorded.Runs[i]; !r.OK || string(r.Draft) != string(want.Draft) || !reflect.DeepEqual(r.History, want.History) || !reflect.DeepEqual(r.Executed, want.Executed) {
			t.Errorf("%s: %s: %s\n%s\nwant %s", r.Scenario, r.Class, r.Error, r.Draft, want.Draft)
		}
	}
}

// A folder with results of one user is not continued with another.
func TestResumeRefusesAnotherUser(t *testing.T) {
	t.Parallel()
	s := eval.Retail()
	opts := &eval.Options{Dir: t.TempDir(), Resume: true}
	if _, err := eval.Measure(t.Context(), s, s.Scenarios, []eval.Target{eval.GoldTarget()}, opts); err != nil {
		t.Fatal(err)
	}
	opts.UserModel = &eval.UserModel{Name: "other", Model: eval.Play([]eval.GoldTurn{{Say: "Yes. [END]"}})}
	if _, err := eval.Measure(t.Context(), s, s.Scenarios, []eval.Target{eval.GoldTarget()}, opts); err == nil || !strings.Contains(err.Error(), "cancel_open_order") {
		t.Errorf("continued with another user: %v", err)
	}
}
