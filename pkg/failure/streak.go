package failure

// Streak is how something went that is tried again and again. The zero value: it has not failed. It has no lock.
type Streak struct{ err error }

// Err is why the last try failed; nil if it did not.
func (s Streak) Err() error { return s.err }

// Turns takes how a try went, and tells whether it failed and the one before did not, or the other way round.
func (s *Streak) Turns(err error) bool {
	before := s.err
	s.err = err
	return (err == nil) != (before == nil)
}

// Changes is Turns, and also tells of a failure that says something else than the one before.
func (s *Streak) Changes(err error) bool {
	before := s.err
	return s.Turns(err) || err != nil && err.Error() != before.Error()
}
