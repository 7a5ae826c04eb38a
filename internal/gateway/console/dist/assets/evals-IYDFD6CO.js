/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c,d,e,f}from"./chunk-RGHK3ZAP.js";import"./chunk-FPNDKDQG.js";import"./chunk-CEU72ERE.js";import"./chunk-PJGPQZAK.js";import"./chunk-OOJM4CTU.js";export{e as NoResults,f as default,d as interval,c as nameOf,b as outcome,a as percent};
