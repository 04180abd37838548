package main
import ("context";"flag")
func (p *project) reviewCommand(flags *flag.FlagSet) func(context.Context, []string) error { return nil }
