package main

import (
	"cmp"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// withFlags adds to a command the flags of the structs that flags point to, in the order of their fields, and returns the command. A flag is an
// exported field with the tags
//
//	flag     its name, and after a comma its letter
//	usage    its text in help, with * around the name of its value
//	default  its default, but for lists: that is what the field holds
//	complete what its value is completed with: a name of completions, or words
//
// An embedded struct has flags of its own, and so has one with the tag group, the heading under which help lists them.
func withFlags(cmd *cobra.Command, flags ...any) *cobra.Command {
	for _, f := range flags {
		defineFlags(cmd, reflect.ValueOf(f).Elem(), "")
	}
	return cmd
}

func defineFlags(cmd *cobra.Command, of reflect.Value, heading string) {
	for i := range of.NumField() {
		field, v := of.Type().Field(i), of.Field(i)
		tag, isFlag := field.Tag.Lookup("flag")
		switch group := field.Tag.Get("group"); {
		case isFlag:
			name, letter, _ := strings.Cut(tag, ",")
			defineFlag(cmd.Flags(), v, name, letter, strings.Replace(field.Tag.Get("usage"), "*", "`", 2))
			f := cmd.Flags().Lookup(name)
			if value, ok := field.Tag.Lookup("default"); ok {
				if err := f.Value.Set(value); err != nil {
					panic(err) // cannot happen: the tag is valid
				}
				f.DefValue = f.Value.String()
			}
			if heading != "" {
				f.Annotations = map[string][]string{groupKey: {heading}}
			}
			if how := field.Tag.Get("complete"); how != "" {
				completeFlag(cmd, name, how)
			}
		case group != "" || field.Anonymous:
			defineFlags(cmd, v, cmp.Or(group, heading))
		}
	}
}

func defineFlag(fs *pflag.FlagSet, v reflect.Value, name, letter, usage string) {
	switch p := v.Addr().Interface().(type) {
	case *bool:
		fs.BoolVarP(p, name, letter, *p, usage)
	case *string:
		fs.StringVarP(p, name, letter, *p, usage)
	case *int:
		fs.IntVarP(p, name, letter, *p, usage)
	case *int64:
		fs.Int64VarP(p, name, letter, *p, usage)
	case *float64:
		fs.Float64VarP(p, name, letter, *p, usage)
	case *time.Duration:
		fs.DurationVarP(p, name, letter, *p, usage)
	case *[]string:
		fs.StringSliceVarP(p, name, letter, *p, usage)
	case *map[string]string:
		fs.StringToStringVarP(p, name, letter, *p, usage)
	case pflag.Value:
		fs.VarP(p, name, letter, usage)
	default:
		panic("no flag has the type " + v.Type().String())
	}
}
