/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c,d,e,f}from"./chunk-EC4LNKCW.js";import"./chunk-UKVU5BF2.js";import"./chunk-AS2EHX4K.js";import"./chunk-HOGM3F6I.js";import"./chunk-OOJM4CTU.js";export{e as NoResults,f as default,d as interval,c as nameOf,b as outcome,a as percent};
