package wasmrt

import "time"

// Now returns the time as the guest sees it; see [Grants].
func (i *Instance) Now() time.Time {
	sec, nsec := i.env.walltime()
	return time.Unix(sec, int64(nsec)).UTC()
}

// Sleep lets time pass for the guest; without a clock it has passed at once. It is for host
// functions: when the context of the call that runs is done, it ends the guest.
func (i *Instance) Sleep(d time.Duration) { i.env.sleep(int64(d)) }

// Random fills p with what the guest takes for random; see [Grants].
func (i *Instance) Random(p []byte) error {
	_, err := i.env.Read(p)
	return err
}
