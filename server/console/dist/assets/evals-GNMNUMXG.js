/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c,d,e,f}from"./chunk-Z36TLMTA.js";import"./chunk-GE4B5JTS.js";import"./chunk-HYAX4NYF.js";import"./chunk-5FCUUUAC.js";export{e as NoResults,f as default,d as interval,c as nameOf,b as outcome,a as percent};
