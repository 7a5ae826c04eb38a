/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c,d,e,f}from"./chunk-ADCXEKNZ.js";import"./chunk-PU3SJNOR.js";import"./chunk-37W357HJ.js";import"./chunk-DOQEEGQV.js";export{e as NoResults,f as default,d as interval,c as nameOf,b as outcome,a as percent};
