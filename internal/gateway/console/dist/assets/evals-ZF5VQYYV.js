/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c,d,e,f}from"./chunk-5B2HMOPO.js";import"./chunk-5LIFUJBF.js";import"./chunk-MHCU5NPX.js";import"./chunk-EOU52FIG.js";import"./chunk-OOJM4CTU.js";export{e as NoResults,f as default,d as interval,c as nameOf,b as outcome,a as percent};
